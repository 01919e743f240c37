/* plan_windows.c - see plan_windows.h. */
#include "plan_windows.h"

#include <stdlib.h>
#include <string.h>

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
static struct element person[] = {
    WINDOW("New contact"),
    {.role = "entry", .name = "Name", .states = FIELD, AT(10), .parent = 0},
    {.role = "push button", .name = "Save", .states = ON, AT(40), .parent = 0},
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

/* A form in a page, below the browser's own controls. */
static struct element page[] = {
    WINDOW("City gym - Browser"),
    BUTTON("Reload", 10),
    BUTTON("Send tab", 20),
    {.role = "document web", .name = "City gym", .states = ON, .rect = {0, 40, 400, 360}, .parent = 0},
    {.role = "entry", .name = "Full name", .states = FIELD, AT(70), .parent = 3},
    {.role = "push button", .name = "Join", .states = ON, AT(100), .parent = 3},
};

/* Buttons of one meaning, and one that does more than end the form. */
static struct element pair[] = {WINDOW("Import"), BUTTON("Dismiss", 10), BUTTON("Cancel", 40),
                                BUTTON("Continue", 70)};
static struct element draft[] = {
    WINDOW("Draft"),
    {.role = "entry", .name = "Name", .states = FIELD, AT(10), .parent = 0},
    BUTTON("Save and publish", 40),
    BUTTON("Cancel", 70),
};

/* "Leave it" asks for no change, and Leave leaves. */
static struct element meeting[] = {WINDOW("Meeting"), BUTTON("Leave", 10), BUTTON("Stay", 40)};
static struct element people[] = {
    WINDOW("New friend"),
    {.role = "entry", .name = "First name", .states = FIELD, AT(10), .parent = 0},
    {.role = "entry", .name = "Last name", .states = FIELD, AT(40), .parent = 0},
    BUTTON("OK", 70),
    BUTTON("Reset", 100),
};

/* Forms whose button is neither OK nor a word of most tasks. */
static struct element stay[] = {
    WINDOW("Guest house"),
    {.role = "spin button", .name = "Guests", .value = "1", .states = FIELD, AT(10), .parent = 0},
    {.role = "spin button", .name = "Nights", .value = "1", .states = FIELD, AT(40), .parent = 0},
    {.role = "check box", .name = "Breakfast", .states = ON, AT(70), .parent = 0},
    BUTTON("Reserve", 100),
    BUTTON("Back", 130),
};
static struct element delivery[] = {
    WINDOW("Furniture"),
    {.role = "entry", .name = "Address", .states = FIELD, AT(10), .parent = 0},
    {.role = "entry", .name = "Day", .value = "24.02.2026", .states = FIELD, AT(40), .parent = 0},
    {.role = "spin button", .name = "Weight (kg)", .value = "1", .states = FIELD, AT(70), .parent = 0},
    BUTTON("Schedule", 100),
    BUTTON("Cancel", 130),
};
static struct element profile[] = {
    WINDOW("Your profile"),
    {.role = "entry", .name = "Email", .value = "kim@old.example", .states = FIELD, AT(10), .parent = 0},
    {.role = "entry", .name = "Phone", .states = FIELD, AT(40), .parent = 0},
    {.role = "check box", .name = "Newsletter", .states = TICKED, AT(70), .parent = 0},
    {.role = "check box", .name = "Wi-Fi calls", .states = TICKED, AT(100), .parent = 0},
    BUTTON("Save profile", 130),
    BUTTON("Cancel", 160),
};
static struct element alarm[] = {
    WINDOW("Alarm"),
    {.role = "label", .name = "06:30 - Time to get up", .states = ON, AT(10), .parent = 0},
    BUTTON("Dismiss", 40),
    BUTTON("Snooze 10 minutes", 70),
};
static struct element ferry[] = {
    WINDOW("Ferry"),
    {.role = "entry", .name = "Passenger name", .states = FIELD, AT(10), .parent = 0},
    {.role = "entry", .name = "Driver name", .states = FIELD, AT(40), .parent = 0},
    BUTTON("Next step", 70),
};
static struct element phones[] = {
    WINDOW("Contact"),
    {.role = "entry", .name = "Phone (home)", .value = "555 0110", .states = FIELD, AT(10), .parent = 0},
    {.role = "entry", .name = "Phone (work)", .value = "555 0147", .states = FIELD, AT(40), .parent = 0},
    BUTTON("Save", 70),
    BUTTON("Close", 100),
};
static struct element ticket[] = {
    WINDOW("Ticket 12"),
    {.role = "entry", .name = "Assigned to", .states = FIELD, AT(10), .parent = 0},
    {.role = "check box", .name = "Urgent", .states = ON, AT(40), .parent = 0},
    BUTTON("Update", 70),
    BUTTON("Cancel", 100),
};
/* A table in which a time and a column name a row, and a button has the name of a column. */
static struct element flights[] = {
    WINDOW("Rebooking"),
    {.role = "table", .name = "", .states = ON, .rect = {0, 20, 400, 80}, .parent = 0},
    {.role = "column header", .name = "Join", .states = ON, .rect = {0, 0, 100, 20}, .parent = 1},
    {.role = "column header", .name = "Departure", .states = ON, .rect = {100, 0, 100, 20}, .parent = 1},
    {.role = "table cell", .name = "LH 201", .states = ON, .rect = {0, 20, 100, 20}, .parent = 1},
    {.role = "table cell", .name = "07:15", .states = ON, .rect = {100, 20, 100, 20}, .parent = 1},
    {.role = "table cell", .name = "LH 204", .states = ON, .rect = {0, 40, 100, 20}, .parent = 1},
    {.role = "table cell", .name = "09:40", .states = ON, .rect = {100, 40, 100, 20}, .parent = 1},
    BUTTON("Join", 200),
    BUTTON("Cancel", 230),
};
static struct element consent[] = {
    WINDOW("House rules"),
    {.role = "check box", .name = "I have read the rules and agree", .states = ON, AT(10), .parent = 0},
    BUTTON("OK", 40),
    BUTTON("Cancel", 70),
};
static struct element enrol[] = {
    WINDOW("Course catalogue"),
    {.role = "label", .name = "Statistics has 4 free places.", .states = ON, AT(10), .parent = 0},
    BUTTON("Enrol", 40),
    BUTTON("Not now", 70),
};
static struct element secret[] = {
    WINDOW("Unlock the archive"),
    {.role = "password text", .name = "Password:", .states = FIELD, AT(10), .parent = 0},
    BUTTON("OK", 40),
    BUTTON("Cancel", 70),
};
static struct element files[] = {
    WINDOW("music - Thunar"),
    {.role = "menu bar", .states = ON, .rect = {0, 0, 400, 20}, .parent = 0},
    {.role = "menu", .name = "File", .states = ON, .rect = {0, 0, 40, 20}, .parent = 1},
    BUTTON("Home", 40),
};

struct snapshot plan_complete(struct element *e, int n)
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
#define WINDOW_OF(list)                                                                                      \
    {                                                                                                        \
#list, list, (int)(sizeof(list) / sizeof *(list))                                                    \
    }
static const struct {
    const char *name;
    struct element *e;
    int n;
} windows[] = {
    WINDOW_OF(order),    WINDOW_OF(editor),  WINDOW_OF(rows),    WINDOW_OF(booking),  WINDOW_OF(saving),
    WINDOW_OF(question), WINDOW_OF(phones),  WINDOW_OF(ferry),   WINDOW_OF(alarm),    WINDOW_OF(hotel),
    WINDOW_OF(contact),  WINDOW_OF(person),  WINDOW_OF(upload),  WINDOW_OF(paper),    WINDOW_OF(parcel),
    WINDOW_OF(tabs),     WINDOW_OF(keys),    WINDOW_OF(lamp),    WINDOW_OF(unsaved),  WINDOW_OF(closing),
    WINDOW_OF(publish),  WINDOW_OF(leaving), WINDOW_OF(account), WINDOW_OF(shop),     WINDOW_OF(shirt),
    WINDOW_OF(wrapping), WINDOW_OF(paying),  WINDOW_OF(session), WINDOW_OF(opening),  WINDOW_OF(message),
    WINDOW_OF(mail),     WINDOW_OF(notice),  WINDOW_OF(page),    WINDOW_OF(pair),     WINDOW_OF(draft),
    WINDOW_OF(meeting),  WINDOW_OF(people),  WINDOW_OF(stay),    WINDOW_OF(delivery), WINDOW_OF(profile),
    WINDOW_OF(ticket),   WINDOW_OF(flights), WINDOW_OF(consent), WINDOW_OF(enrol),    WINDOW_OF(secret),
    WINDOW_OF(files)};

struct snapshot plan_window(const char *name)
{
    size_t i = 0;
    while (strcmp(windows[i].name, name) != 0)
        i++;
    return plan_complete(windows[i].e, windows[i].n);
}

char *plan_text(const struct snapshot *s, const char *task, bool proposal)
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
