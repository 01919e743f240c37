/* t_masked.c - tests of the elements that a client may read: secrets and hidden zones. */
#include "check.h"

#include "gate/masked.h"

#include <string.h>

static char *mask(const void *secret, const char *text)
{
    return xstrdup(strstr(text, secret) ? "{{PIN}}" : text);
}

/* A list in a hidden zone, with an item of no known place; a field outside with a secret. */
static void t_hidden(void **state)
{
    struct element e[] = {
        {.role = "frame", .name = "Bank", .value = "", .label = "", .rect = {0, 0, 800, 600}, .parent = -1},
        {.role = "combo box", .name = "Account", .value = "1", .label = "", .rect = {10, 10, 50, 20}},
        {.role = "menu item", .name = "Savings", .value = "", .label = "", .trust = PLACE_NONE, .parent = 1},
        {.role = "menu item", .name = "Help", .value = "", .label = "", .trust = PLACE_NONE},
        {.role = "entry", .name = "Code", .value = "is 4711", .label = "", .rect = {10, 300, 50, 20}},
    };
    const struct snapshot s = {.e = e, .n = 5, .hit = -1};
    const char *const zones[] = {"0,0,100,100", NULL};
    const struct masked_by by = {.mask = mask, .arg = "4711", .hide = zones, .root = {0, 0, 800, 600}};
    struct masked m;
    struct err why = ERR_INIT;
    (void)state;
    if (masked_copy(&m, &s, &by, &why))
        fail_msg("%s", why.text);
    assert_string_equal(m.s.e[0].name, "Bank");
    for (int i = 1; i < 3; i++)
        assert_true(!strcmp(m.s.e[i].role, "hidden") && !*m.s.e[i].name && !*m.s.e[i].value);
    assert_string_equal(m.s.e[3].name, "Help");
    assert_string_equal(m.s.e[4].value, "{{PIN}}");
    masked_free(&m);
}

static const struct CMUnitTest tests[] = {
    CLAIM("elements in a hidden zone are empty, also those without a place, and secrets are names", t_hidden),
};

CHECK_MAIN()
