/* t_plain_sentences.c - sentences as plain steps: those that are understood, and those that must be left to a model. */
#include "check.h"

#include "base/clock.h"
#include "plain/plain.h"

#include <stdlib.h>
#include <string.h>

/* Returns the steps as printed, separated by " | ", or "?" with the reason noted; the caller frees it. */
static char *parsed(const char *sentence)
{
    struct plain_steps steps;
    struct err e = ERR_INIT;
    struct buf b;
    buf_init(&b, 1 << 16);
    buf_puts(&b, "");
    if (plain_parse(sentence, &steps, &e) < 0) {
        assert_true(e.text[0] && e.kind == ERR_USAGE);
        buf_puts(&b, "?");
    }
    for (int i = 0; i < steps.n; i++) {
        buf_puts(&b, i ? " | " : "");
        plain_print(&steps.s[i], &b);
    }
    plain_free(&steps);
    return buf_take(&b);
}

static const char *const understood[][2] = {
    {"press Save", "press \"Save\""},
    {"Press the Save button.", "press \"Save\" button"},
    {"Click on the link \"Terms & conditions\"", "press \"Terms & conditions\" link"},
    {"click \"Don't save\"", "press \"Don't save\""},
    {"press 'Save As...'", "press \"Save As...\""},
    {"press Save As...", "press \"Save As...\""},
    {"press Find and Replace", "press \"Find and Replace\""},
    {"press Bergmann & Co", "press \"Bergmann & Co\""},
    {"press Find and Replace and press OK", "press \"Find and Replace\" | press \"OK\""},
    {"press Select All", "press \"Select All\""},
    {"tick Replace all at once", "tick \"Replace all at once\""},
    {"press 7", "press \"7\""},
    {"press ctrl+s", "press key ctrl+s"},
    {"press Ctrl+Shift+T", "press key ctrl+shift+t"},
    {"press Enter", "press Enter"},
    {"press the Enter key", "press key enter"},
    {"press the Tab key 3 times", "press key tab 3 times"},
    {"press Page Down twice", "press key pagedown 2 times"},
    {"press F5", "press F5"},
    {"press +", "press \"+\""},
    {"press Delete in the row of Invoice 7", "press \"Delete\" in the row of \"Invoice 7\""},
    {"double-click report final.txt", "double-click \"report final.txt\""},
    {"double click on the file notes.txt", "double-click \"notes.txt\" file"},
    {"right-click Trash", "right-click \"Trash\""},
    {"tick Gift wrapping", "tick \"Gift wrapping\""},
    {"check the box Remember me", "tick \"Remember me\" box"},
    {"untick the Newsletter checkbox", "untick \"Newsletter\" checkbox"},
    {"uncheck Word wrap", "untick \"Word wrap\""},
    {"choose Large in Size", "choose \"Large\" in \"Size\""},
    {"select \"Made in Italy\" from the Origin list", "choose \"Made in Italy\" from the Origin list"},
    {"choose Return from Rome in Direction", "choose Return from Rome in Direction"},
    {"choose \"Made in Italy\" from Wines in Stock", "choose \"Made in Italy\" from Wines in Stock"},
    {"choose Dark", "choose \"Dark\""},
    {"enter Ana Lima into Name", "enter \"Ana Lima\" into \"Name\""},
    {"type \"to be, or not to be\" into the Title field",
     "enter \"to be, or not to be\" into \"Title\" field"},
    {"enter \"say \\\"hi\\\"\" into Text", "enter \"say \\\"hi\\\"\" into \"Text\""},
    {"type /tmp/a file.txt in File name", "enter \"/tmp/a file.txt\" into \"File name\""},
    {"type hello", "enter \"hello\""},
    {"fill in Name with Ana", "enter \"Ana\" into \"Name\""},
    {"fill E-mail with ana@example.org", "enter \"ana@example.org\" into \"E-mail\""},
    {"set Quantity to 30", "enter \"30\" into \"Quantity\""},
    {"clear the Name field, then press OK", "enter \"\" into \"Name\" field | press \"OK\""},
    {"turn on Wi-Fi, turn Dark mode off", "tick \"Wi-Fi\" | untick \"Dark mode\""},
    {"switch on Wi-Fi, switch Dark mode off", "tick \"Wi-Fi\" | untick \"Dark mode\""},
    {"switch off the Bluetooth switch", "untick \"Bluetooth\" switch"},
    {"enable Spell checking and disable Hints", "tick \"Spell checking\" | untick \"Hints\""},
    {"set Price to 3.50", "enter \"3.50\" into \"Price\""},
    {"open menu File > Save As", "open menu \"File\" > \"Save As\""},
    {"open File>Export>PDF...", "open menu \"File\" > \"Export\" > \"PDF...\""},
    {"open the Edit menu", "open menu \"Edit\""},
    {"choose Format > Font and size", "open menu \"Format\" > \"Font and size\""},
    {"go to tab Advanced", "go to tab \"Advanced\""},
    {"switch to the Position tab", "go to tab \"Position\""},
    {"open the tab Fonts", "go to tab \"Fonts\""},
    {"close the window", "close the window"},
    {"scroll down to Terms", "scroll to \"Terms\""},
    {"wait for Order received", "wait until \"Order received\" is shown"},
    {"wait until the dialog Saving is gone", "wait until \"Saving\" dialog is gone"},
    {"wait until Progress disappears", "wait until \"Progress\" is gone"},
    {"check that Save is shown", "check that \"Save\" is shown"},
    {"check that the Save button is not shown", "check that \"Save\" button is gone"},
    {"check that Gift wrapping is ticked", "check that \"Gift wrapping\" is ticked"},
    {"verify that Gift wrapping is not checked", "check that \"Gift wrapping\" is unticked"},
    {"make sure Next is disabled", "check that \"Next\" is disabled"},
    {"check that Total equals \"12.00 EUR\"", "check that \"Total\" equals \"12.00 EUR\""},
    {"check that Status contains Done", "check that \"Status\" contains \"Done\""},
    {"Type Ana into Name, tick Window seat, then press OK",
     "enter \"Ana\" into \"Name\" | tick \"Window seat\" | press \"OK\""},
    {"Open menu Format > Character, then go to tab Position",
     "open menu \"Format\" > \"Character\" | go to tab \"Position\""},
    {"Choose Large in Size, then press Save", "choose \"Large\" in \"Size\" | press \"Save\""},
    {"press A\npress B\n", "press \"A\" | press \"B\""},
    {"press A; press B. Then press C.", "press \"A\" | press \"B\" | press \"C\""},
    {"please press \xe2\x80\x9cSave and close\xe2\x80\x9d and then close the window",
     "press \"Save and close\" | close the window"},
    {"tick Active in the row of Dora Ek", "tick \"Active\" in the row of \"Dora Ek\""},
    {"choose Admin in Role in the row of Bo Chen", "choose \"Admin\" in \"Role\" in the row of \"Bo Chen\""},
    {"select Large in the row of Oak tray", "choose \"Large\" in the row of \"Oak tray\""},
    {"set Amount in the row of Tea to 3", "enter \"3\" into \"Amount\" in the row of \"Tea\""},
    {"enter 3 in Amount in the row of Tea", "enter \"3\" into \"Amount\" in the row of \"Tea\""},
    {"check that Active in the row of Bo is ticked", "check that \"Active\" in the row of \"Bo\" is ticked"},
    {"press Price, set To to 50", "press \"Price\" | enter \"50\" into \"To\""},
    {"enter Smith, John into Author and press OK", "enter \"Smith, John\" into \"Author\" | press \"OK\""},
};

static void t_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof understood / sizeof *understood; i++) {
        char *have = parsed(understood[i][0]);
        if (strcmp(have, understood[i][1]) != 0)
            check_note("%s\n  %s\n  expected %s", understood[i][0], have, understood[i][1]);
        assert_string_equal(have, understood[i][1]);
        free(have);
    }
}

static void t_left_alone(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        "   ",
        "press",
        "press the",
        "Do not press Save",
        "don't press Save",
        "press Save or Cancel",
        "press Save if it is enabled",
        "press all buttons",
        "tick all boxes",
        "press everything",
        "untick every box except News",
        "press the second button",
        "press it",
        "press this",
        "tick the last one",
        "enter not today into Title",
        "enter Ana Lima",
        "enter salt and press oil into Name",
        "press \"Save",
        "choose the cheapest flight",
        "book a flight from Paris to Rome",
        "open the Photos folder",
        "order a large shirt with gift wrapping",
        "press Save unless the file exists",
        "type Ana into Name into Title",
        "go to page 3",
        "close the file",
        "wait",
        "wait for the page to load",
        "check that",
        "check that it is shown",
        "make the text bold",
        "show me the word count",
        "press Save, carefully done, then think",
        "press Price, set From to 5 to 9",
        "open menu > Save",
        "open menu File > Save As, frobnicate Name",
        "open menu Edit > Replace, enter red into Find what, tick all boxes",
        "open menu Edit > Undo or Redo",
        "tick Newsletter and all others",
        "open menu File > > Save",
        "set the volume",
        "press OK then",
        "press Tab 0 times",
        "press Tab 5000 times",
        "Press neither Save nor Cancel",
        "write a letter to the bank",
        "select all",
        "clear all",
        "turn the page",
        "turn it on",
        "disable everything",
        "check whether Save is shown",
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char *have = parsed(others[i]);
        if (strcmp(have, "?") != 0) {
            check_note("understood: '%s' as %s", others[i], have);
            wrong++;
        }
        free(have);
    }
    assert_int_equal(wrong, 0);
}

static void t_inverse(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof understood / sizeof *understood; i++) {
        struct buf text;
        struct plain_steps steps;
        struct err e = ERR_INIT;
        if (plain_parse(understood[i][0], &steps, &e) < 0)
            fail_msg("%s: %s", understood[i][0], e.text);
        for (int k = 0; k < steps.n; k++) {
            buf_init(&text, 1 << 16);
            plain_print(&steps.s[k], &text);
            char *again = parsed(text.data);
            assert_string_equal(again, text.data);
            free(again);
            buf_free(&text);
        }
        plain_free(&steps);
    }
}

static void t_bounded(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 500; i++)
        buf_puts(&b, i % 3 ? "and press " : "press A, ");
    int64_t begin = clock_ns();
    free(parsed(b.data));
    check_note("500 words take %.0f ms", clock_ms_since(begin));
    for (int i = 0; i < 5000; i++)
        buf_puts(&b, "and press ");
    char *have = parsed(b.data);
    assert_string_equal(have, "?");
    free(have);
    buf_free(&b);
}

static const struct CMUnitTest tests[] = {
    CLAIM("sentences that the rules cover become steps", t_understood),
    CLAIM("a sentence that leaves something open is left alone, with the reason", t_left_alone),
    CLAIM("a printed step is parsed as the same step", t_inverse),
    CLAIM("long sentences take no time", t_bounded),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
