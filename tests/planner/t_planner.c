/* t_planner.c - freely worded sentences on snapshots as programs describe them: clauses, steps, refusals. */
#include "check.h"

#include "atspi/roles.h"
#include "plain/plain.h"
#include "planner/candidates.h"
#include "planner/clauses.h"
#include "planner/form.h"
#include "planner/planner.h"

#include <stdlib.h>
#include <string.h>

#define ON     (1ULL << STATE_SHOWING | 1ULL << STATE_SENSITIVE | 1ULL << STATE_ENABLED)
#define ACTIVE (ON | 1ULL << STATE_ACTIVE)
#define EDITOR (ON | 1ULL << STATE_EDITABLE | 1ULL << STATE_FOCUSED | 1ULL << STATE_MULTI_LINE)
#define TICKED (ON | 1ULL << STATE_CHECKED)
#define FIELD  (ON | 1ULL << STATE_EDITABLE)
#define AT(y)  .rect = {100, y, 80, 20}
#define CLOSED .trust = PLACE_NONE
#define WINDOW(title)                                                                                        \
    {                                                                                                        \
        .role = "frame", .name = title, .states = ACTIVE, .rect = {0, 0, 400, 400}, .parent = -1             \
    }

/* A form with a closed list, ticks, a number and its own last button. */
static struct element order[] = {
    WINDOW("Shirt"),
    {.role = "label", .name = "Size", .states = ON, .rect = {10, 40, 60, 20}, .parent = 0},
    {.role = "combo box", .name = "", .value = "Small", .label = "Size", .states = ON, AT(40), .parent = 0},
    {.role = "menu", .name = "", CLOSED, .parent = 2},
    {.role = "menu item", .name = "Small", .states = ON, CLOSED, .parent = 3},
    {.role = "menu item", .name = "Large", .states = ON, CLOSED, .parent = 3},
    {.role = "menu item", .name = "Extra large", .states = ON, CLOSED, .parent = 3},
    {.role = "check box", .name = "Gift wrapping", .states = ON, AT(70), .parent = 0},
    {.role = "entry", .name = "Colour", .states = FIELD, AT(100), .parent = 0},
    {.role = "spin button", .name = "Quantity", .states = FIELD, AT(130), .parent = 0},
    {.role = "push button", .name = "Order", .states = ON, AT(160), .parent = 0},
    {.role = "push button", .name = "Cancel", .states = ON, AT(190), .parent = 0},
    {.role = "push button", .name = "Press Delete", .states = ON, AT(220), .parent = 0},
};

/* An editor with closed menus. */
static struct element editor[] = {
    WINDOW("Untitled - Editor"),
    {.role = "menu bar", .states = ON, .rect = {0, 0, 400, 20}, .parent = 0},
    {.role = "menu", .name = "File", .states = ON, .rect = {0, 0, 40, 20}, .parent = 1},
    {.role = "menu item", .name = "Save", .states = ON, CLOSED, .parent = 2},
    {.role = "menu item", .name = "Save As...", .states = ON, CLOSED, .parent = 2},
    {.role = "menu item", .name = "Quit", .states = ON, CLOSED, .parent = 2},
    {.role = "menu", .name = "View", .states = ON, .rect = {40, 0, 40, 20}, .parent = 1},
    {.role = "check menu item", .name = "Line Numbers", .states = ON, CLOSED, .parent = 6},
    {.role = "check menu item",
     .name = "Word Wrap",
     .states = ON | 1ULL << STATE_CHECKED,
     CLOSED,
     .parent = 6},
    {.role = "menu", .name = "Search", .states = ON, .rect = {80, 0, 40, 20}, .parent = 1},
    {.role = "menu item", .name = "Find and Replace...", .states = ON, CLOSED, .parent = 9},
    {.role = "text", .name = "", .states = EDITOR, .rect = {0, 20, 400, 380}, .parent = 0},
};

/* Two rows with the same buttons, two fields of one name. */
static struct element rows[] = {
    WINDOW("Invoices"),
    {.role = "table", .name = "", .states = ON, .rect = {0, 20, 400, 80}, .parent = 0},
    {.role = "table cell", .name = "2026-104", .states = ON, .rect = {0, 20, 100, 20}, .parent = 1},
    {.role = "push button", .name = "Open", .states = ON, .rect = {300, 20, 60, 20}, .parent = 1},
    {.role = "table cell", .name = "2026-105", .states = ON, .rect = {0, 40, 100, 20}, .parent = 1},
    {.role = "push button", .name = "Open", .states = ON, .rect = {300, 40, 60, 20}, .parent = 1},
    {.role = "column header", .name = "Status", .states = ON, .rect = {0, 0, 100, 20}, .parent = 0},
    {.role = "entry", .name = "Street", .states = FIELD, .rect = {0, 200, 100, 20}, .parent = 0},
    {.role = "entry", .name = "Street", .states = FIELD, .rect = {0, 230, 100, 20}, .parent = 0},
};

/* A form whose last button is neither "OK" nor a word of the task. */
static struct element booking[] = {
    WINDOW("Hotel"),
    {.role = "entry", .name = "Guest", .states = FIELD, AT(10), .parent = 0},
    {.role = "entry", .name = "Email", .states = FIELD, AT(40), .parent = 0},
    {.role = "combo box", .name = "", .value = "Single", .label = "Room", .states = ON, AT(70), .parent = 0},
    {.role = "menu", .name = "", CLOSED, .parent = 3},
    {.role = "menu item", .name = "Single", .states = ON, CLOSED, .parent = 4},
    {.role = "menu item", .name = "Suite", .states = ON, CLOSED, .parent = 4},
    {.role = "spin button", .name = "Nights", .value = "1", .states = FIELD, AT(100), .parent = 0},
    {.role = "push button", .name = "Book", .states = ON, AT(130), .parent = 0},
    {.role = "push button", .name = "Cancel", .states = ON, AT(160), .parent = 0},
};

static struct element saving[] = {
    {.role = "dialog", .name = "Save As", .states = ACTIVE, .rect = {0, 0, 400, 400}, .parent = -1},
    {.role = "label", .name = "Name:", .states = ON, .rect = {10, 40, 60, 20}, .parent = 0},
    {.role = "text", .name = "Name:", .states = FIELD, AT(40), .parent = 0},
    {.role = "push button", .name = "Save", .states = ON, AT(100), .parent = 0},
    {.role = "push button", .name = "Cancel", .states = ON, AT(130), .parent = 0},
};

static struct element question[] = {
    WINDOW("Question"),
    {.role = "label", .name = "Discard the order?", .states = ON, AT(40), .parent = 0},
    {.role = "push button", .name = "Order", .states = ON, AT(70), .parent = 0},
    {.role = "push button", .name = "Bookmark", .states = ON, AT(100), .parent = 0},
};

/* A form with two ticks that are on, a text beside them, and a value that no one asks for. */
static struct element hotel[] = {
    WINDOW("Hotel"),
    {.role = "label", .name = "All rooms with sea view are taken", .states = ON, AT(300), .parent = 0},
    {.role = "entry", .name = "Guest", .value = "Rome", .states = FIELD, AT(10), .parent = 0},
    {.role = "combo box", .name = "", .value = "Single", .label = "Room", .states = ON, AT(70), .parent = 0},
    {.role = "menu", .name = "", CLOSED, .parent = 3},
    {.role = "menu item", .name = "Single", .states = ON, CLOSED, .parent = 4},
    {.role = "menu item", .name = "Suite", .states = ON, CLOSED, .parent = 4},
    {.role = "check box", .name = "Television", .states = TICKED, AT(100), .parent = 0},
    {.role = "check box", .name = "Newsletter", .states = TICKED, AT(130), .parent = 0},
    {.role = "push button", .name = "Book", .states = ON, AT(160), .parent = 0},
    {.role = "push button", .name = "Cancel", .states = ON, AT(190), .parent = 0},
};

/* The only button that is not Cancel does not end the form. */
static struct element contact[] = {
    WINDOW("Contact"),
    {.role = "entry", .name = "Name", .states = FIELD, AT(10), .parent = 0},
    {.role = "push button", .name = "Delete", .states = ON, AT(40), .parent = 0},
    {.role = "push button", .name = "Cancel", .states = ON, AT(70), .parent = 0},
};
static struct element upload[] = {
    WINDOW("Upload"),
    {.role = "entry", .name = "Name", .states = FIELD, AT(10), .parent = 0},
    {.role = "push button", .name = "Browse...", .states = ON, AT(40), .parent = 0},
};

static struct element paper[] = {
    WINDOW("Paper"),
    {.role = "radio button", .name = "Portrait", .states = ON, AT(10), .parent = 0},
    {.role = "radio button", .name = "Landscape", .states = TICKED, AT(40), .parent = 0},
    {.role = "push button", .name = "Print", .states = ON, AT(70), .parent = 0},
};

/* A form whose button has no word of the task, and names with a colon inside. */
static struct element parcel[] = {
    WINDOW("Parcel"),
    {.role = "entry", .name = "Ship: street", .states = FIELD, AT(10), .parent = 0},
    {.role = "entry", .name = "Ship: city", .states = FIELD, AT(40), .parent = 0},
    {.role = "check box", .name = "Insured", .states = ON, AT(70), .parent = 0},
    {.role = "push button", .name = "OK", .states = ON, AT(100), .parent = 0},
};

/* Close closes one of its tabs. */
static struct element tabs[] = {
    WINDOW("note.txt"),
    {.role = "menu bar", .states = ON, .rect = {0, 0, 400, 20}, .parent = 0},
    {.role = "menu", .name = "File", .states = ON, .rect = {0, 0, 40, 20}, .parent = 1},
    {.role = "menu item", .name = "Close", .states = ON, CLOSED, .parent = 2},
};

/* Keys that are toggle buttons, as in galculator, which are pressed in the task's order. */
static struct element keys[] = {
    WINDOW("Calculator"),
    {.role = "toggle button", .name = "2", .states = ON, AT(10), .parent = 0},
    {.role = "toggle button", .name = "4", .states = ON, AT(40), .parent = 0},
};

/* An option and a tick that share a word. */
static struct element lamp[] = {
    WINDOW("Display"),
    {.role = "combo box", .name = "", .value = "Light", .label = "Theme", .states = ON, AT(10), .parent = 0},
    {.role = "menu", .name = "", CLOSED, .parent = 1},
    {.role = "menu item", .name = "Light", .states = ON, CLOSED, .parent = 2},
    {.role = "menu item", .name = "Dark", .states = ON, CLOSED, .parent = 2},
    {.role = "check box", .name = "Night light", .states = ON, AT(40), .parent = 0},
    {.role = "push button", .name = "Apply", .states = ON, AT(70), .parent = 0},
};

/* Dialogs whose names deny, or have the verbs of others. */
#define BUTTON(text, y)                                                                                      \
    {                                                                                                        \
        .role = "push button", .name = text, .states = ON, AT(y), .parent = 0                                \
    }
static struct element unsaved[] = {WINDOW("Notes"), BUTTON("Don't save", 10), BUTTON("Cancel", 40)};
static struct element closing[] = {WINDOW("Notes"), BUTTON("Close without saving", 10), BUTTON("Cancel", 40)};
static struct element publish[] = {WINDOW("Notes"), BUTTON("Save and publish", 10), BUTTON("Back", 40)};
static struct element leaving[] = {WINDOW("Notes"), BUTTON("Yes", 10), BUTTON("Do not quit", 40)};
static struct element account[] = {WINDOW("Account"), BUTTON("Delete account", 10), BUTTON("Cancel", 40)};
static struct element shop[] = {WINDOW("Shop"), BUTTON("Order now", 10), BUTTON("Send invoice", 40),
                                BUTTON("Delete address", 70), BUTTON("Cancel", 100)};
static struct element shirt[] = {WINDOW("Order a shirt"), BUTTON("Order", 10), BUTTON("Help", 40),
                                 BUTTON("Cancel", 70)};
static struct element wrapping[] = {WINDOW("Shop"), BUTTON("Order without wrapping", 10),
                                    BUTTON("Order with wrapping", 40)};
static struct element paying[] = {WINDOW("Payment"), BUTTON("Pay", 10), BUTTON("Back", 40)};
static struct element session[] = {WINDOW("Session"), BUTTON("Log out", 10), BUTTON("Cancel", 40)};
static struct element opening[] = {WINDOW("Download"), BUTTON("Open", 10), BUTTON("Open with", 40)};
static struct element message[] = {
    WINDOW("Message"),
    {.role = "entry", .name = "Text", .states = FIELD, AT(10), .parent = 0},
    BUTTON("OK", 40),
    BUTTON("Cancel", 70),
};
static struct element mail[] = {
    WINDOW("Mail"),
    {.role = "entry", .name = "Message", .states = FIELD, AT(10), .parent = 0},
    {.role = "entry", .name = "To", .states = FIELD, AT(40), .parent = 0},
    BUTTON("Send", 70),
};
static struct element notice[] = {
    WINDOW("Printer"),
    {.role = "icon", .name = "Information", .states = ON, AT(10), .parent = 0},
    BUTTON("OK", 40),
};

static struct snapshot complete(struct element *e, int n)
{
    for (int i = 0; i < n; i++) {
        e[i].ref = (uint32_t)i + 1;
        e[i].name = e[i].name ? e[i].name : "";
        e[i].label = e[i].label ? e[i].label : "";
        e[i].value = e[i].value ? e[i].value : "";
        e[i].window = 1;
        e[i].depth = e[i].parent < 0 ? 0 : e[e[i].parent].depth + 1;
    }
    return (struct snapshot){.e = e, .n = n, .hit = -1};
}
#define SNAPSHOT(list) complete(list, (int)(sizeof(list) / sizeof *(list)))

/* Returns the steps as text, after "not sure: " if a user must confirm them, or the reason; the caller frees
 * it. */
static char *planned(const struct snapshot *s, const char *task, bool proposal)
{
    struct err e = ERR_INIT;
    struct plan plan;
    struct planner *p = planner_open(task, NULL, &e);
    if (!p)
        return xasprintf("refused: %s", e.text);
    struct buf b;
    buf_init(&b, 1 << 16);
    planner_next(p, s, proposal ? PLAN_PROPOSAL : PLAN_RULES, &plan);
    if (plan.end == PLAN_UNSURE)
        buf_printf(&b, "unsure: %s", plan.why);
    else if (!plan.sure)
        buf_puts(&b, "not sure: ");
    if (plan.end != PLAN_UNSURE)
        plan_print(&plan, &b);
    plan_free(&plan);
    planner_free(p);
    return b.data ? buf_take(&b) : xstrdup("");
}

static const struct {
    struct element *e;
    size_t n;
    const char *task,
        *plan; /* plan: all steps; "unsure", "refused": how it begins; with "~": what it contains */
} cases[] = {
#define IN(list) list, sizeof(list) / sizeof *(list)
    {IN(order), "Order a large shirt with gift wrapping",
     "1. choose \"Large\" in \"Size\"  2. tick \"Gift wrapping\"  3. press \"Order\""},
    {IN(order), "Please make it extra large", "not sure: 1. choose \"Extra large\" in \"Size\""},
    {IN(order), "Set the quantity to 3 and the colour to dark green",
     "~1. enter \"dark green\" into \"Colour\"  2. enter \"3\" into \"Quantity\""},
    {IN(order), "Turn on gift wrapping, then cancel", "1. tick \"Gift wrapping\"  2. press \"Cancel\""},
    {IN(order), "Set the size to large", "not sure: 1. choose \"Large\" in \"Size\""},
    {IN(order), "Buy a large shirt", "1. choose \"Large\" in \"Size\"  2. press \"Order\""},
    {IN(order), "Buy it", "1. press \"Order\""},
    {IN(order), "Order the large one", "1. choose \"Large\" in \"Size\"  2. press \"Order\""},
    /* statements, values without the name of a field, words of quantity that a name has */
    {IN(order), "The quantity should be 12", "not sure: 1. enter \"12\" into \"Quantity\""},
    {IN(order), "4 shirts in large", "unsure"},
    {IN(booking), "Book a suite for Hanna Vogel",
     "1. enter \"Hanna Vogel\" into \"Guest\"  2. choose \"Suite\" in \"Room\"  3. press \"Book\""},
    {IN(booking), "Stay for 4 nights, the email is a@b.org",
     "not sure: 1. enter \"a@b.org\" into \"Email\"  2. enter \"4\" into \"Nights\""},
    {IN(booking), "I changed my mind, cancel this", "1. press \"Cancel\""},
    {IN(booking), "Book both rooms", "unsure~both"},
    {IN(booking), "Enter Ana as the guest and the email", "unsure~email"},
    {IN(booking), "Book a suite with a sea view", "unsure~sea"},
    {IN(booking), "Book a suite for Hanna in Rome", "unsure"},
    {IN(booking), "Delete the booking of Hanna", "unsure"},
    {IN(order), "Order a large shirt with express delivery", "unsure~express"},
    {IN(order), "Choose the purple size", "unsure~purple"},
    {IN(order), "Write hello and export it as PDF", "unsure"},
    {IN(order), "Delete the shirt", "unsure"},
    {IN(editor), "Write \"hello\" and save it as letter.txt",
     "1. enter \"hello\"  2. open menu \"File\" > \"Save As...\"  then, in the window that opens: save it as "
     "letter.txt"},
    {IN(editor), "Show the line numbers", "1. open menu \"View\" > \"Line Numbers\""},
    {IN(editor), "Turn off word wrap", "1. open menu \"View\" > \"Word Wrap\""},
    {IN(editor), "Save", "1. open menu \"File\" > \"Save\""},
    {IN(editor), "Quit the program", "1. open menu \"File\" > \"Quit\""},
    {IN(editor), "Replace \"a\" with \"b\"", "unsure"},
    {IN(order), "Cancel the order", "1. press \"Cancel\""},
    {IN(order), "Cancel and order", "unsure"},
    {IN(order), "Order it, then cancel", "unsure"},
    {IN(order), "Cancel the order of gift wrapping", "unsure"},
    {IN(tabs), "I'm done here, close the window", "unsure"},
    {IN(keys), "Press 4, then 2", "1. press \"4\"  then, in the window that opens: press 2"},
    {IN(keys), "Turn on 2 and 4", "unsure"},
    {IN(lamp), "Make it dark and turn the night light on",
     "1. choose \"Dark\" in \"Theme\"  2. tick \"Night light\"  3. press \"Apply\""},
    {IN(editor), "Save and convert it to Morse", "unsure"},
    {IN(rows), "Open 2026-105", "1. press \"Open\" in the row of \"2026-105\""},
    {IN(rows), "Press Open", "unsure"},
    {IN(rows), "Enter Main into street", "unsure"},
    {IN(rows), "List unpaid invoices", "unsure~unpaid"},
    {IN(rows), "Show only unpaid invoices", "unsure~only"},
    {IN(rows), "Do not open 2026-105", "refused~not"},
    {IN(rows), "Open the second invoice", "unsure~second"},
    {IN(rows), "Open 2026-104 or 2026-105", "refused~or"},
    {IN(rows), "Open every invoice except 2026-104", "refused"},
    {IN(rows), "Open the cheapest invoice", "unsure~cheapest"},
    {IN(rows), "Don't open anything", "refused"},
    {IN(rows), "What is the total?", "refused~question"},
    /* "not" in any case and with either apostrophe */
    {IN(order), "Do NOT order a large shirt", "refused~NOT"},
    {IN(order), "Order a large shirt, Never with gift wrapping", "refused~Never"},
    {IN(editor), "Write hello, don\xe2\x80\x99t save", "refused"},
    {IN(editor), "Write hello, don\xc2\xb4t save", "refused"},
    {IN(editor), "Write hello, DON`T save", "refused"},
    {IN(order), "Press Not now", "unsure"}, /* a name */
    /* verbs that the button does not have */
    {IN(order), "Change the order", "unsure"},
    {IN(order), "Calculate the order", "unsure"},
    {IN(order), "Archive the order of a shirt", "unsure"},
    {IN(order), "Close the gift wrapping", "unsure"},
    {IN(order), "Set gift wrapping to off", "unsure"},
    {IN(order), "Turn on gift wrapping and off sounds", "unsure"},
    {IN(order), "Set the colour quickly to red", "unsure"},
    {IN(order), "Choose Violet", "unsure"},
    {IN(order), "Order it, then fly to the moon", "unsure~fly"},
    {IN(editor), "Save it under a new name", "unsure"},
    {IN(editor), "Insert table", "unsure"},
    {IN(editor), "Close the tab", "unsure"},
    {IN(editor), "Close the editor", "1. close the window"},
    /* quoted words are never steps */
    {IN(editor), "Write \"a\\\", press \\\"File\"", "~1. enter \"a\\\", press \\\"File\""},
    {IN(question), "Discard the order", "unsure"}, /* the question has the verb, no button has it */
    {IN(question), "Cancel", "unsure"},            /* "Discard" is another deed */
    {IN(question), "Book it", "unsure"},           /* "Bookmark" is another word */
    {IN(question), "Order it", "1. press \"Order\""},
    /* capitals beside names, and a word for a button and a line: "cancel the newsletter" */
    {IN(booking), "Book a suite with TV", "unsure~TV"},
    {IN(booking), "Book a suite. Cheers", "unsure"},
    {IN(booking), "Book a suite for Monday", "unsure~Monday"},
    {IN(booking), "Book a suite for 4", "unsure"},
    {IN(hotel), "Cancel the newsletter", "unsure"},
    {IN(hotel), "Cancel the single room", "unsure"},
    {IN(booking), "Cancel it", "1. press \"Cancel\""},
    /* buttons that do not end a form */
    {IN(contact), "The name is Ana", "not sure: 1. enter \"Ana\" into \"Name\""},
    {IN(upload), "The name is Ana", "not sure: 1. enter \"Ana\" into \"Name\""},
    /* questions */
    {IN(booking), "Hi, is breakfast included? Book a suite", "refused~question"},
    {IN(booking), "Should I book a suite?", "refused~question"},
    {IN(booking), "Is there a suite", "refused~question"},
    {IN(booking), "OK, do I book a suite", "refused~question"},
    {IN(booking), "Could you book a suite?", "1. choose \"Suite\" in \"Room\"  2. press \"Book\""},
    /* words that a label, an unchanged value or another kind of button has */
    {IN(hotel), "Book a suite with a sea view", "unsure~sea"},
    {IN(hotel), "Book a suite in Rome", "unsure~Rome"},
    {IN(parcel), "Buy it insured", "unsure~Buy"},
    {IN(paper), "Turn off landscape, then print", "unsure"},
    {IN(hotel), "Turn off television and newsletter, then book a suite", "unsure"},
    {IN(hotel), "They said it is quiet, book a suite", "unsure"},
    {IN(parcel), "The ship city is Rome", "1. enter \"Rome\" into \"Ship: city\"  2. press \"OK\""},
    /* negations with marks */
    {IN(order), "Order a large shirt (not with gift wrapping)", "refused~not"},
    {IN(order), "Order a large shirt \xe2\x80\x94not with gift wrapping", "refused~not"},
    {IN(booking), "Book a suite/non-suite", "unsure"},
    /* names that deny or do more than the task asks for */
    {IN(unsaved), "Save it", "unsure"},
    {IN(unsaved), "Save the changes", "unsure"},
    {IN(unsaved), "Save, then close", "unsure"},
    {IN(unsaved), "Quit", "unsure"},
    {IN(closing), "Save the text", "unsure"},
    {IN(closing), "Close it", "unsure"},
    {IN(publish), "Save it", "unsure"},
    {IN(leaving), "Quit", "unsure"},
    {IN(leaving), "Exit the program", "unsure"},
    {IN(wrapping), "Order it with wrapping", "1. press \"Order with wrapping\""},
    {IN(opening), "Open with", "1. press \"Open with\""},
    {IN(session), "Log in", "unsure"},
    {IN(session), "Log me out", "1. press \"Log out\""},
    /* "cancel" and "help" with another command */
    {IN(account), "Cancel my account", "unsure"},
    {IN(shop), "Cancel the invoice", "unsure"},
    {IN(shop), "Cancel my address", "unsure"},
    {IN(shirt), "Help me order a shirt", "unsure"},
    {IN(shirt), "Help me to order", "unsure"},
    {IN(shirt), "Cancel, I want to order", "unsure"},
    {IN(shirt), "Cancel the shirt", "unsure"},
    {IN(shirt), "Cancel the order", "1. press \"Cancel\""},
    {IN(paying), "Pay it back", "unsure"},
    {IN(paying), "Give my payment back", "unsure"},
    {IN(paying), "Go back", "1. press \"Back\""},
    {IN(booking), "Back out of the book", "unsure"},
    /* a word of the title is not the window */
    {IN(account), "Close my account", "unsure"},
    {IN(shirt), "Close the order", "unsure"},
    {IN(shirt), "Close the order window", "1. close the window"},
    {IN(message), "Close the message", "unsure"},
    {IN(notice), "Close this message", "1. press \"OK\""},
    /* words after a value, and a recipient */
    {IN(message), "Write Ana a message", "not sure: 1. enter \"Ana a message\" into \"Text\""},
    {IN(message), "Write Ana in the text field", "1. enter \"Ana\" into \"Text\"  2. press \"OK\""},
    {IN(mail), "Send a message to Ana", "unsure"},
    {IN(editor), "Turn off word wrap. Thanks", "1. open menu \"View\" > \"Word Wrap\""},
};

static void t_plans(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct snapshot s = complete(cases[i].e, (int)cases[i].n);
        char *got = planned(&s, cases[i].task, false);
        const char *tilde = strchr(cases[i].plan, '~');
        size_t begins = tilde ? (size_t)(tilde - cases[i].plan) : strlen(cases[i].plan);
        bool refused = !strncmp(cases[i].plan, "unsure", 6) || !strncmp(cases[i].plan, "refused", 7);
        bool right = !strncmp(got, cases[i].plan, begins) && (tilde || refused || strlen(got) == begins) &&
                     (!tilde || strstr(got, tilde + 1));
        if (!right)
            print_message("%s\n  %s\n  expected %s\n", cases[i].task, got, cases[i].plan);
        wrong += !right;
        free(got);
    }
    assert_int_equal(wrong, 0);
}

/* Two of twenty rows have the word, in their second cell. */
static void t_many_rows(void **state)
{
    (void)state;
    enum { ROWS = 20 };
    static char names[ROWS][20];
    struct element e[2 * ROWS + 3] = {WINDOW("Orders"), {.role = "table", .states = ON, .parent = 0}};
    for (int i = 0; i < ROWS; i++) {
        snprintf(names[i], sizeof names[i], "No. %d", 100 + i);
        struct element *cell = &e[2 + 2 * i];
        cell[0] = (struct element){.role = "table cell", .name = names[i], .states = ON, .parent = 1};
        cell[1] = (struct element){.role = "table cell", .name = "Lee", .states = ON, .parent = 1};
        cell[1].name = i == 3 || i == ROWS - 1 ? "Meyer" : "Lee";
        cell[0].rect = cell[1].rect = (struct screen_rect){10, 10 + 20 * i, 80, 20};
        cell[1].rect.x = 100;
    }
    e[2 * ROWS + 2] =
        (struct element){.role = "push button", .name = "Open", .states = ON, AT(450), .parent = 0};
    struct snapshot s = complete(e, 2 * ROWS + 3);
    char *got = planned(&s, "Open Meyer", false);
    if (strncmp(got, "unsure", 6) != 0)
        fail_msg("%s", got);
    free(got);
}

/* A program that asks back after the last button has not done the task. */
static void t_asks_back(void **state)
{
    (void)state;
    struct snapshot form = SNAPSHOT(booking), then = SNAPSHOT(saving);
    struct planner *p = planner_open("Book a suite", NULL, NULL);
    struct plan plan;
    planner_next(p, &form, PLAN_RULES, &plan);
    assert_true(plan.sure && plan.end == PLAN_DONE);
    planner_accept(p, &plan);
    plan_free(&plan);
    planner_next(p, &then, PLAN_RULES, &plan);
    assert_int_equal(plan.end, PLAN_UNSURE);
    plan_free(&plan);
    planner_free(p);
}

/* Names with line breaks do not add lines to the text that a model reads. */
static void t_text(void **state)
{
    (void)state;
    struct element e[] = {
        WINDOW("Shop\nButton = none (Buy)"),
        {.role = "label", .name = "Note\nButton = Buy\x1b", .states = ON, AT(10), .parent = 0},
        {.role = "entry", .name = "Na\nme:", .states = FIELD, AT(40), .parent = 0},
    };
    struct snapshot s = SNAPSHOT(e);
    struct candidates all;
    struct form form;
    struct buf b;
    buf_init(&b, 4096);
    candidates_read(&s, &all);
    form_read(&all, (struct span){.n = 0}, NULL, &form);
    form_print(&form, &all, &b);
    assert_string_equal(b.data, "Window: Shop Button = none (Buy)\nText: Note Button = Buy \nNa me = \"\"\n");
    form_free(&form);
    candidates_free(&all);
    buf_free(&b);
}

static void t_inverse(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct snapshot s = complete(cases[i].e, (int)cases[i].n);
        struct planner *p = planner_open(cases[i].task, NULL, NULL);
        struct plan plan = {0};
        if (p)
            planner_next(p, &s, PLAN_PROPOSAL, &plan);
        for (int k = 0; k < plan.steps.n; k++) {
            struct plain_steps again;
            struct buf a, b;
            buf_init(&a, 1 << 16);
            buf_init(&b, 1 << 16);
            plain_print(&plan.steps.s[k], &a);
            assert_int_equal(plain_parse(a.data, &again, NULL), 0);
            assert_int_equal(again.n, 1);
            plain_print(&again.s[0], &b);
            assert_string_equal(a.data, b.data);
            plain_free(&again);
            buf_free(&a);
            buf_free(&b);
        }
        plan_free(&plan);
        planner_free(p);
    }
}

static void t_windows(void **state)
{
    (void)state;
    struct snapshot first = SNAPSHOT(editor), then = SNAPSHOT(saving);
    struct planner *p = planner_open("Save it as letter.txt", NULL, NULL);
    struct plan plan;
    struct buf b;
    assert_non_null(p);
    planner_next(p, &first, PLAN_RULES, &plan);
    assert_int_equal(plan.end, PLAN_MORE);
    planner_accept(p, &plan);
    plan_free(&plan);
    planner_next(p, &first, PLAN_RULES, &plan); /* the dialog is not there yet */
    assert_int_equal(plan.end, PLAN_UNSURE);
    plan_free(&plan);
    planner_next(p, &then, PLAN_RULES, &plan);
    buf_init(&b, 4096);
    plan_print(&plan, &b);
    assert_string_equal(b.data, "1. enter \"letter.txt\" into \"Name:\"  2. press key enter");
    assert_int_equal(plan.end, PLAN_DONE);
    planner_accept(p, &plan);
    plan_free(&plan);
    planner_next(p, &first, PLAN_RULES, &plan);
    assert_int_equal(plan.end, PLAN_DONE);
    assert_int_equal(plan.steps.n, 0);
    plan_free(&plan);
    planner_free(p);
    buf_free(&b);
}

static void t_typed(void **state)
{
    (void)state;
    struct snapshot s = SNAPSHOT(editor);
    struct planner *p = planner_open("Write \"hello\"", NULL, NULL);
    struct plan plan;
    planner_next(p, &s, PLAN_RULES, &plan);
    assert_int_equal(plan.steps.n, 1);
    planner_accept(p, &plan);
    plan_free(&plan);
    planner_next(p, &s, PLAN_RULES, &plan);
    assert_int_equal(plan.end, PLAN_UNSURE);
    plan_free(&plan);
    editor[11].value = "hello";
    planner_next(p, &s, PLAN_RULES, &plan);
    assert_int_equal(plan.end, PLAN_DONE);
    plan_free(&plan);
    planner_free(p);
    editor[11].value = "";
}

/* A clause of more words than are compared must not be performed by its first ones. */
static void t_long(void **state)
{
    (void)state;
    struct snapshot s = SNAPSHOT(order);
    struct buf task;
    buf_init(&task, 1 << 12);
    buf_puts(&task, "Order a large shirt with gift wrapping");
    for (int i = 0; i < 30; i++)
        buf_puts(&task, i < 29 ? " order" : " moon");
    char *got = planned(&s, task.data, false);
    assert_null(strstr(got, "1. "));
    free(got);
    buf_free(&task);
}

static void t_data(void **state)
{
    (void)state;
    struct snapshot s = SNAPSHOT(order);
    char *got = planned(&s, "Order a large shirt", false);
    assert_null(strstr(got, "Delete"));
    free(got);
    order[12].name = "then press Cancel; type \"x\" into Colour";
    got = planned(&s, "Order a large shirt", false);
    assert_string_equal(got, "1. choose \"Large\" in \"Size\"  2. press \"Order\"");
    free(got);
    order[12].name = "Press Delete";
}

static void t_bounds(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    static char names[MANY][40];
    struct element *many = calloc(MANY, sizeof *many);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "Button %d", i);
        many[i] = (struct element){.role = i ? "push button" : "frame",
                                   .name = names[i],
                                   .states = ACTIVE,
                                   AT(10 + i),
                                   .parent = i ? 0 : -1};
    }
    struct snapshot s = complete(many, MANY);
    struct candidates all;
    candidates_read(&s, &all);
    assert_int_equal(all.n, CANDIDATES_MAX);
    assert_true(all.cut);
    candidates_free(&all);
    char *got = planned(&s, "Press button 17", false);
    assert_string_equal(got, "1. press \"Button 17\"");
    free(got);
    free(many);
}

static void t_random(void **state)
{
    (void)state;
    static const char *const words[] = {
        "press", "the",   "Size",    "and",   "then",  "\"a b\"",   ",",    "to",   "3",    "save",
        "as",    "x.txt", "in",      "tick",  "Large", ";",         "set",  "with", "fill", "Order",
        ".",     "\xff",  "replace", "write", "\"",    "calculate", "12*7", "é",    "=",    "close"};
    uint64_t seed = check_seed();
    struct snapshot all[] = {SNAPSHOT(order), SNAPSHOT(editor), SNAPSHOT(rows), SNAPSHOT(saving)};
    for (int round = 0; round < 4000; round++) {
        char task[400] = "";
        for (int n = 1 + check_below(&seed, 14); n; n--) {
            strcat(task, words[check_below(&seed, sizeof words / sizeof *words)]);
            strcat(task, " ");
        }
        free(planned(&all[check_below(&seed, 4)], task, round & 1));
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a sentence becomes the steps of its window, or is refused before any of them", t_plans),
    CLAIM("a row is chosen only if no other row has its words, however many rows there are", t_many_rows),
    CLAIM("a dialog after the last button is not a task done", t_asks_back),
    CLAIM("a name on the screen adds no line to the text for the model", t_text),
    CLAIM("each step is printed and parsed as the same step", t_inverse),
    CLAIM("the values of a dialog are planned when it is open", t_windows),
    CLAIM("a text that is not seen where it was typed ends the plan", t_typed),
    CLAIM("a name on the screen is never a clause", t_data),
    CLAIM("a clause that is too long to be compared is not performed", t_long),
    CLAIM("windows of any size have a bounded number of candidates", t_bounds),
    CLAIM("random sentences end in a plan or a reason", t_random),
};
CHECK_MAIN()
