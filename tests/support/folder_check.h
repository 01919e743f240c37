/* folder_check.h - CLAIM_WITH(text, fn, folder_setup, folder_teardown): a folder `place` without a server. */
#pragma once

#include "xvfb.h"

static struct xvfb place;

static int folder_setup(void **state)
{
    xvfb_folder(&place);
    return 0;
}

static int folder_teardown(void **state)
{
    xvfb_stop(&place);
    return 0;
}
