/* t_copied.c - text that a small model typed, held to the task that it copied it from (src/agent/copied.c). */
#include "check.h"

#include "agent/private.h"

#include <stdlib.h>

static const char flight[] =
    "Book the 13:05 flight from Rendketeak to Paulchea on 9 April for \"Pilhegchart Zi\".";

static void t_slip(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"Paulcheak", "Paulchea"},
                                           {"Rendkteak", "Rendketeak"},
                                           {"Rnedketeak", "Rendketeak"},
                                           {"Pilhegchart Zo", "Pilhegchart Zi"},
                                           {"Pilhegchat", "Pilhegchart"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *copied = agent_copied_text(cases[i][0], flight);
        check_note("\"%s\" is \"%s\"", cases[i][0], copied ? copied : "");
        assert_non_null(copied);
        assert_string_equal(copied, cases[i][1]);
        free(copied);
    }
}

static void t_meant(void **state)
{
    (void)state;
    static const char *const cases[] = {"Paulchea",         "PAULCHEA",
                                        "Rendketeak to",    "Pauls",
                                        "13:05:00",         "9 April 2",
                                        "flight from Rome", "",
                                        "Something else",   "Pilhegchart Zimmermann"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_null(agent_copied_text(cases[i], flight));
    assert_null(agent_copied_text("Room 4, No 18", "Room 4, No 17"));
    assert_null(agent_copied_text("abcdefghi", ""));
}

static const struct CMUnitTest tests[] = {
    CLAIM("a text that is a slip or two off a piece of the task is that piece", t_slip),
    CLAIM("what the task says, other numbers, other case, short and other texts stay as they are", t_meant),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
