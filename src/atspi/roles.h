/* roles.h - roles and states of AT-SPI, by their numbers in the protocol.
 *
 * Programs send numbers, so the names do not depend on the version of at-spi2-core. at-spi2-core 2.53 renamed
 * "push button" to "button"; recordings and checks keep the older name, and role_canonical() accepts both. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { /* AtspiRole */
       ROLE_ALERT = 2,
       ROLE_CHECK_MENU_ITEM = 8,
       ROLE_COMBO_BOX = 11,
       ROLE_DIAL = 15,
       ROLE_IMAGE = 27,
       ROLE_LABEL = 29,
       ROLE_LIST_ITEM = 32,
       ROLE_MENU = 33,
       ROLE_MENU_BAR = 34,
       ROLE_MENU_ITEM = 35,
       ROLE_PAGE_TAB = 37,
       ROLE_PANEL = 39,
       ROLE_PASSWORD = 40,
       ROLE_POPUP_MENU = 41,
       ROLE_PROGRESS_BAR = 42,
       ROLE_PUSH_BUTTON = 43,
       ROLE_RADIO_MENU_ITEM = 45,
       ROLE_SLIDER = 51,
       ROLE_SPIN_BUTTON = 52,
       ROLE_STATUS_BAR = 54,
       ROLE_TABLE_CELL = 56,
       ROLE_TEXT = 61,
       ROLE_TOGGLE_BUTTON = 62,
       ROLE_UNKNOWN = 67,
       ROLE_PARAGRAPH = 73,
       ROLE_ENTRY = 79,
       ROLE_CAPTION = 81,
       ROLE_DOCUMENT_FRAME = 82,
       ROLE_HEADING = 83,
       ROLE_SECTION = 85,
       ROLE_DOCUMENT_WEB = 95,
       ROLE_COMMENT = 97,
       ROLE_LEVEL_BAR = 103,
       ROLE_BLOCK_QUOTE = 105,
       ROLE_LOG = 111,
       ROLE_STATIC = 116,
       ROLE_DESCRIPTION_TERM = 122,
       ROLE_DESCRIPTION_VALUE = 123,
};

enum { /* AtspiStateType: bits of a state set */
       STATE_ACTIVE = 1,
       STATE_BUSY = 3,
       STATE_CHECKED = 4,
       STATE_EDITABLE = 7,
       STATE_ENABLED = 8,
       STATE_EXPANDABLE = 9,
       STATE_EXPANDED = 10,
       STATE_FOCUSABLE = 11,
       STATE_FOCUSED = 12,
       STATE_MULTI_LINE = 17,
       STATE_PRESSED = 20,
       STATE_SELECTED = 23,
       STATE_SENSITIVE = 24,
       STATE_SHOWING = 25,
       STATE_VISIBLE = 30,
       STATE_MANAGES_DESCENDANTS = 31,
       STATE_INDETERMINATE = 32, /* partly checked */
       STATE_IS_DEFAULT = 39,
       STATE_CLICKABLE = 62, /* not of AT-SPI: text, image or group with a click handler of a page */
};

static inline bool state_in(uint64_t states, int bit)
{
    return states >> bit & 1;
}

/* Returns the name of a role, as at-spi2-core before 2.53 has it: "push button". "unknown": invalid
 * number. */
const char *role_name(uint32_t role);
/* Returns that name for a name of any version: "push button" for "button". Borrowed. */
const char *role_canonical(const char *name);

/* Returns whether the name or label of a text field says that it takes a password. GTK 4 reports fields that
 * hide their text as ordinary ones, with the text. */
bool role_hides_text(const char *name);
