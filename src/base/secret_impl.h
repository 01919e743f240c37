/* secret_impl.h - the values of secrets.  Private to base/secret.c and secret_text.c. */
#pragma once

#include "base/secret.h"

struct secret {
    char name[SECRET_NAME + 1];
    char value[SECRET_MAX + 1];
};

struct secrets { /* on its own memory pages */
    int n;
    struct secret list[SECRETS_MAX];
};
