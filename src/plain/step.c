/* step.c - one step of a sentence: the first rule that covers all words is taken. */
#include "plain/private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Words that turn a sentence into something that these rules do not express. */
#define LOGIC                                                                                                \
    "not|never|don't|if|unless|or|except|without|otherwise|until|when|while|any|both|either|neither|but|"    \
    "instead|whether"
#define COUNTS "all|every|each|everything|anything|something|nothing|everyone|several|some"
#define WHICH                                                                                                \
    "first|second|third|fourth|fifth|last|next|previous|other|another|it|them|this|that|these|those|here|"   \
    "there|cheapest|best|largest|smallest|biggest|newest|oldest|latest|fastest|lowest|highest|most|least"

#define VERBS                                                                                                \
    "press|click|tap|push|hit|tick|untick|check|uncheck|choose|select|pick|enter|type|write|fill|set|open|"  \
    "close|go|switch|scroll|wait|verify|double-click|right-click|clear|turn|enable|disable"

static int not_understood(struct err *why, const char *what, struct span s)
{
    char *text = words_text(s);
    err_set(why, ERR_USAGE, "%s: '%.80s'", what, text);
    free(text);
    return -1;
}

/* Checks that a name without quotes names one thing.  Capital letters make a word part of a name: "Select
 * All", and so does a word with a capital letter before a quantity: "Replace all". */
static int check_name(struct span s, struct err *why)
{
    if (!s.n || (s.n == 1 && words_article(s, 0)))
        return err_set(why, ERR_USAGE, "a name is missing");
    for (int i = 0; i < s.n; i++) {
        bool lower = !isupper((unsigned char)s.w[i].text[0]);
        bool named = i && isupper((unsigned char)s.w[i - 1].text[0]) && !s.w[i - 1].after;
        if (lower && words_is(s, i, named ? LOGIC : LOGIC "|" COUNTS))
            return not_understood(why, "leaves open which element is meant; quote a name that has this word",
                                  words_part(s, i, i + 1));
        if (lower && i == 0 && words_is(s, i, WHICH))
            return not_understood(why, "does not name an element", s);
        if (lower && words_is(s, i, "into"))
            return not_understood(why, "'into' is unexpected", s);
        if (lower && i && s.w[i - 1].after == ',' && !s.w[i].quoted && words_is(s, i, VERBS) && i + 1 < s.n)
            return not_understood(why, "could be a name or another step; quote a name that has a comma", s);
    }
    return 0;
}

/* Sets what, role and whole from a name that may end with the word for its role. */
static int take_name(struct span s, const char *roles, struct plain_step *out, struct err *why)
{
    s = words_bare(s);
    if (check_name(s, why) < 0)
        return -1;
    int n = s.n;
    if (n > 2 && words_is(s, n - 2, "check|radio|list|text|menu|tool|combo|push|search|input") &&
        words_is(s, n - 1, "box|button|item|field|entry") && words_is(s, n - 1, roles))
        n -= 2;
    else if (n > 1 && words_is(s, n - 1, roles))
        n--;
    bool led = n == s.n && n > 1 && words_is(s, 0, roles); /* "the button Save" */
    out->what = words_text(led ? words_part(s, 1, n) : words_part(s, 0, n));
    out->whole = words_text(s);
    out->role = n < s.n ? words_text(words_part(s, n, s.n)) : led ? xstrdup(s.w[0].text) : NULL;
    return 0;
}

/* Returns the only word of s among `any` (-1: none, -2: several).  One with a capital letter, or at an end,
 * is part of a name if there is another: "set To to 5". */
static int only(struct span s, const char *any)
{
    int at = -1, clear = -1, found = 0, n = 0;
    for (int i = 0; i < s.n; i++) {
        if (!words_is(s, i, any))
            continue;
        at = i;
        found++;
        if (i > 0 && i + 1 < s.n && !isupper((unsigned char)s.w[i].text[0])) {
            clear = i;
            n++;
        }
    }
    return n == 1 ? clear : found > 1 ? -2 : at;
}

static char *bare_text(struct span s)
{
    return words_text(words_bare(s));
}

#define PRESSED "button|link|icon|item|entry|file|folder|element|option|label|cell|heading"
#define TICKED  "box|checkbox|button|switch|option|item|toggle"
#define FILLED  "field|box|entry|area|input|textbox|cell|bar"
#define CHOSEN  "list|box|field|combobox|dropdown|menu|selector|button|group|option|item"

/* Cuts the row from the end of "Open in the row of Invoice 7". */
static int take_row(struct span *s, struct plain_step *out, struct err *why)
{
    for (int i = 1; i + 3 < s->n; i++) {
        int of = words_is(*s, i + 1, "the") ? i + 3 : i + 2;
        if (!words_is(*s, i, "in|of|from") || !words_is(*s, of - 1, "row|line") ||
            !words_is(*s, of, "of|with|for") || of + 1 >= s->n)
            continue;
        if (check_name(words_bare(words_part(*s, of + 1, s->n)), why) < 0)
            return -1;
        out->row = bare_text(words_part(*s, of + 1, s->n));
        *s = words_part(*s, 0, i);
        break;
    }
    return 0;
}

/* Sets the verb, and what, role, whole and row from the name after it. */
static int named(enum plain_verb verb, struct span s, const char *roles, struct plain_step *out,
                 struct err *why)
{
    out->verb = verb;
    return take_row(&s, out, why) < 0 ? -1 : take_name(s, roles, out, why);
}

/* Appends a level of a menu; level is emptied.  Returns -1 if it is missing, or there are too many. */
static int end_level(struct span s, struct buf *level, struct plain_step *out, struct err *why)
{
    while (level->len && level->data[level->len - 1] == ' ')
        level->data[--level->len] = 0;
    if (!level->len || out->levels == PLAIN_PATH_MAX)
        return not_understood(why, "a level of the menu is missing, or there are too many", s);
    out->path[out->levels++] = xstrdup(level->data);
    buf_clear(level);
    return 0;
}

/* "File > Save As", also without spaces.  Returns 0 when there is no ">" outside of quotes. */
static int read_path(struct span s, struct plain_step *out, struct err *why)
{
    struct buf level;
    int marks = 0, status = 0;
    buf_init(&level, PLAIN_TEXT_MAX);
    buf_puts(&level, "");
    for (int i = 0; i < s.n && status == 0; i++) {
        const char *at = s.w[i].text;
        bool quoted = s.w[i].quoted;
        if (level.len && (quoted || *at != '>'))
            buf_putc(&level, ' ');
        for (; *at && status == 0; at++) {
            bool mark = *at == '>' && !quoted;
            marks += mark;
            status = mark ? end_level(s, &level, out, why) : buf_putc(&level, *at);
        }
    }
    status = status == 0 ? end_level(s, &level, out, why) : status;
    buf_free(&level);
    return status < 0 ? -1 : marks > 0;
}

/* "open menu File > Save As", "open the Edit menu", "choose File > Save". */
static int menu(struct span s, bool named, struct plain_step *out, struct err *why)
{
    s = words_bare(s);
    if (s.n > 1 && words_is(s, 0, "menu|menus")) {
        s = words_part(s, 1, s.n);
        named = true;
    } else if (s.n > 1 && words_is(s, s.n - 1, "menu")) {
        s = words_part(s, 0, s.n - 1);
        named = true;
    }
    out->verb = PLAIN_MENU;
    int marks = read_path(s, out, why);
    if (marks < 0 || (!marks && !named))
        return marks < 0 ? -1 : not_understood(why, "no rule covers", s);
    for (int i = 0; i + 1 < s.n && marks; i++)
        if (s.w[i].after && !s.w[i].quoted)
            return not_understood(why, "no rule covers the end of", s);
    return check_name(s, why);
}

#define BEFORE_LIST "from|in|for|under"

/* Reads the words before and after word `at` as the option and the list.  whole: words for a role belong to
 * the name of the list. */
static int option_of_list(struct span s, int at, bool whole, struct plain_step *out, struct err *why)
{
    struct plain_step list = {0};
    int status = take_name(words_part(s, at + 1, s.n), CHOSEN, &list, why);
    if (status == 0)
        status = take_name(words_part(s, 0, at), "option|item|entry", out, why);
    free(out->whole);
    out->whole = bare_text(s);
    char **name = whole ? &list.whole : &list.what;
    out->in = *name;
    *name = NULL;
    plain_step_free(&list);
    return status;
}

/* "choose Large in Size", "choose Large".  Of several words that could begin the name of the list, the last
 * one does; plain_choice() has the others. */
static int choose(struct span s, struct plain_step *out, struct err *why)
{
    int at = -1;
    for (int i = 0; i < s.n; i++)
        if (!s.w[i].quoted && strchr(s.w[i].text, '>'))
            return menu(s, true, out, why);
    out->verb = PLAIN_CHOOSE;
    if (take_row(&s, out, why) < 0)
        return -1;
    for (int i = 1; i + 1 < s.n; i++)
        at = words_is(s, i, BEFORE_LIST) ? i : at;
    return at < 0 ? take_name(s, CHOSEN, out, why) : option_of_list(s, at, false, out, why);
}

bool plain_choice(const struct plain_step *s, int k, struct plain_step *out)
{
    struct words words;
    bool found = false;
    *out = (struct plain_step){0};
    if (!s->whole || !s->in || words_split(s->whole, &words, NULL) < 0)
        return false;
    struct span all = {words.w, words.n};
    for (int i = 2 * (words.n - 2) + 1; i > 1 && !found; i--) {
        bool whole = !(i & 1);
        if (!words_is(all, i / 2, BEFORE_LIST) || (whole && !words_is(all, words.n - 1, CHOSEN)) || k-- > 0)
            continue;
        found = true;
        if (option_of_list(all, i / 2, whole, out, NULL) < 0)
            plain_step_free(out);
    }
    words_free(&words);
    return found;
}

/* text, field of "enter TEXT into FIELD", "fill FIELD with TEXT", "set FIELD to TEXT". */
static int enter(struct span text, struct span field, struct plain_step *out, struct err *why)
{
    out->verb = PLAIN_ENTER;
    if (!text.n)
        return err_set(why, ERR_USAGE, "the text to enter is missing");
    for (int i = 0; i + 1 < text.n; i++)
        if (words_is(text, i, "and") && words_is(text, i + 1, VERBS))
            return not_understood(why, "could be text or another step; quote the text", text);
    if (text.n > 1 && words_is(text, 0, "the|a|an|my|our|your|his|her|its|their"))
        return not_understood(why, "could describe the text or be the text; quote the text", text);
    if (text.n > 1 && !field.n)
        return not_understood(why, "text without a field needs quotes", text);
    if (!(text.n == 1 && text.w[0].quoted) && check_name(text, why) < 0)
        return -1;
    if (field.n && named(PLAIN_ENTER, field, FILLED, out, why) < 0)
        return -1;
    out->value = words_text(text);
    return 0;
}

static int enter_into(struct span s, struct plain_step *out, struct err *why)
{
    int at = only(s, "into");
    if (at == -1 && take_row(&s, out, why) < 0)
        return -1;
    if (at == -1)
        at = only(s, "in");
    if (s.n > 1 && words_is(s, 0, "text") && s.w[1].quoted)
        return enter_into(words_part(s, 1, s.n), out, why);
    if (at == -2)
        return not_understood(why, "two words could begin the name of the field; quote the text", s);
    if (at < 0)
        return enter(s, (struct span){s.w, 0}, out, why);
    return enter(words_part(s, 0, at), words_part(s, at + 1, s.n), out, why);
}

static int fill(struct span s, const char *joint, struct plain_step *out, struct err *why)
{
    int at = only(s, joint);
    if (at <= 0)
        return not_understood(
            why, at == -2 ? "several words could begin the text; quote it" : "no text is given for", s);
    return enter(words_part(s, at + 1, s.n), words_part(s, 0, at), out, why);
}

/* "clear NAME". */
static int clear(struct span field, struct plain_step *out, struct err *why)
{
    if (named(PLAIN_ENTER, field, FILLED, out, why) < 0)
        return -1;
    out->value = xstrdup("");
    return 0;
}

/* "turn on NAME", "turn NAME off", "enable NAME". */
static int turn(struct span s, struct plain_step *out, struct err *why)
{
    bool turns = words_is(s, 0, "turn|switch"), first = turns && words_is(s, 1, "on|off");
    int at = first ? 1 : turns ? s.n - 1 : 0;
    bool on = words_is(s, at, "on|enable"), off = words_is(s, at, "off|disable");
    if (!on && !off)
        return not_understood(why, "no rule covers", s);
    struct span name = words_part(s, 1 + first, turns && !first ? s.n - 1 : s.n);
    return named(on ? PLAIN_TICK : PLAIN_UNTICK, name, TICKED, out, why);
}

/* "go to tab Advanced", "go to the Advanced tab". */
static int tab(struct span s, struct plain_step *out, struct err *why)
{
    s = words_bare(s);
    out->verb = PLAIN_TAB;
    if (s.n > 1 && words_is(s, 0, "tab"))
        return take_name(words_part(s, 1, s.n), "", out, why);
    if (s.n > 1 && words_is(s, s.n - 1, "tab|page"))
        return take_name(words_part(s, 0, s.n - 1), "", out, why);
    return not_understood(why, "no rule covers", s);
}

struct ending {
    const char *first, *second, *third; /* alternatives of the last words; NULL: any number before */
    enum plain_state state;
};

/* Parses the condition of a check or wait: "NAME is shown", "NAME equals TEXT". */
static int condition(struct span s, struct plain_step *out, struct err *why)
{
    static const struct ending endings[] = {
        {"is|are", "not", "shown|visible|there|present|displayed|open", PLAIN_GONE},
        {"is|are", "not", "ticked|checked|selected|on", PLAIN_UNTICKED},
        {"is|are", "not", "enabled|active|available", PLAIN_DISABLED},
        {"is|are", NULL, "shown|visible|there|present|displayed|open", PLAIN_SHOWN},
        {"is|are", NULL, "gone|hidden|closed|absent", PLAIN_GONE},
        {"is|are", NULL, "ticked|checked|selected|on", PLAIN_TICKED},
        {"is|are", NULL, "unticked|unchecked|off", PLAIN_UNTICKED},
        {"is|are", NULL, "enabled|active|available", PLAIN_ENABLED},
        {"is|are", NULL, "disabled|inactive|unavailable|greyed", PLAIN_DISABLED},
        {NULL, NULL, "appears|opens|exists|shows", PLAIN_SHOWN},
        {NULL, NULL, "disappears|closes|vanishes", PLAIN_GONE},
    };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const struct ending *e = &endings[i];
        int words = 1 + (e->first != NULL) + (e->second != NULL), n = s.n - words;
        if (n >= 1 && words_is(s, s.n - 1, e->third) && (!e->second || words_is(s, s.n - 2, e->second)) &&
            (!e->first || words_is(s, n, e->first))) {
            out->state = e->state;
            return named(out->verb, words_part(s, 0, n), PRESSED "|" TICKED "|" FILLED "|window|dialog", out,
                         why);
        }
    }
    int at = only(s, "equals|contains|is|shows|says|reads");
    if (at <= 0 || at == s.n - 1)
        return not_understood(why, "no rule covers", s);
    out->state = words_is(s, at, "contains|shows|says|reads") ? PLAIN_CONTAINS : PLAIN_EQUALS;
    struct span value = words_part(s, at + 1, s.n);
    if (!(value.n == 1 && value.w[0].quoted) && check_name(value, why) < 0)
        return -1;
    if (named(out->verb, words_part(s, 0, at), PRESSED "|" FILLED "|value|text", out, why) < 0)
        return -1;
    out->value = words_text(value);
    return 0;
}

static int wait_for(struct span s, struct plain_step *out, struct err *why)
{
    out->verb = PLAIN_WAIT;
    out->state = PLAIN_SHOWN;
    if (words_is(s, 0, "for") && s.n > 1) {
        struct span name = words_part(s, 1, s.n);
        for (int i = 1; i < name.n; i++)
            if (words_is(name, i, "to") && i + 1 < name.n)
                return not_understood(why, "no rule covers", s);
        return take_name(name, PRESSED "|window|dialog|message", out, why);
    }
    if (words_is(s, 0, "until|till") && s.n > 1)
        return condition(words_part(s, 1, s.n), out, why);
    return not_understood(why, "no rule covers", s);
}

static int check(struct span s, struct plain_step *out, struct err *why)
{
    out->verb = PLAIN_CHECK;
    return condition(words_part(s, 1, s.n), out, why);
}

static int close_window(struct span s, struct plain_step *out, struct err *why)
{
    s = words_is(s, 0, "the|this") ? words_part(s, 1, s.n) : s;
    out->verb = PLAIN_CLOSE;
    if (s.n == 1 && words_is(s, 0, "window|dialog"))
        return 0;
    return not_understood(why, "no rule covers", s);
}

static int scroll_to(struct span s, struct plain_step *out, struct err *why)
{
    int at = words_is(s, 0, "down|up") ? 1 : 0;
    out->verb = PLAIN_SCROLL;
    if (!words_is(s, at, "to"))
        return not_understood(why, "no rule covers", s);
    return take_name(words_part(s, at + 1, s.n), PRESSED "|" FILLED, out, why);
}

/* Reads the steps that begin with "open", "go" or "switch". */
static int open_or_go(struct span s, struct plain_step *out, struct err *why)
{
    bool go = words_is(s, 0, "go|switch|change");
    struct span rest = words_part(s, go && words_is(s, 1, "to") ? 2 : 1, s.n);
    struct span bare = words_bare(rest);
    if (words_is(bare, 0, "tab") || words_is(bare, bare.n - 1, "tab"))
        return tab(rest, out, why);
    return go ? not_understood(why, "no rule covers", s) : menu(rest, false, out, why);
}

static int parse_verb(struct span s, struct plain_step *out, struct err *why)
{
    int one = words_is(s, 1, "on") ? 2 : 1, two = words_is(s, 2, "on") ? 3 : 2;
    if (words_is(s, 0, "double-click|doubleclick|right-click|rightclick"))
        return named(words_is(s, 0, "double-click|doubleclick") ? PLAIN_DOUBLE_CLICK : PLAIN_RIGHT_CLICK,
                     words_part(s, one, s.n), PRESSED, out, why);
    if (words_is(s, 0, "double|right") && words_is(s, 1, "click"))
        return named(words_is(s, 0, "double") ? PLAIN_DOUBLE_CLICK : PLAIN_RIGHT_CLICK,
                     words_part(s, two, s.n), PRESSED, out, why);
    int keys = words_is(s, 0, "press|hit|push") ? plain_press_keys(words_part(s, 1, s.n), out, why) : 0;
    if (keys)
        return keys < 0 ? -1 : 0;
    if (words_is(s, 0, "press|click|hit|push|tap"))
        return named(PLAIN_PRESS, words_part(s, one, s.n), PRESSED, out, why);
    if (words_is(s, 0, "check|verify|make|ensure") && (words_is(s, 1, "that") || words_is(s, 1, "sure")))
        return check(words_part(s, words_is(s, 1, "sure") && words_is(s, 2, "that") ? 2 : 1, s.n), out, why);
    if (words_is(s, 0, "tick|check|untick|uncheck"))
        return named(words_is(s, 0, "tick|check") ? PLAIN_TICK : PLAIN_UNTICK, words_part(s, 1, s.n), TICKED,
                     out, why);
    struct span rest = words_part(s, 1, s.n);
    if (words_is(s, 0, "choose|select|pick"))
        return choose(rest, out, why);
    if (words_is(s, 0, "enter|type|write"))
        return enter_into(rest, out, why);
    if (words_is(s, 0, "fill"))
        return fill(words_is(s, 1, "in|out") ? words_part(s, 2, s.n) : rest, "with", out, why);
    if (words_is(s, 0, "set"))
        return fill(rest, "to", out, why);
    if (words_is(s, 0, "clear"))
        return clear(rest, out, why);
    bool switches = words_is(s, 0, "switch") && (words_is(s, 1, "on|off") || words_is(s, s.n - 1, "on|off"));
    if (switches || words_is(s, 0, "turn|enable|disable"))
        return turn(s, out, why);
    if (words_is(s, 0, "open|go|switch|change"))
        return open_or_go(s, out, why);
    if (words_is(s, 0, "close"))
        return close_window(rest, out, why);
    if (words_is(s, 0, "scroll"))
        return scroll_to(rest, out, why);
    if (words_is(s, 0, "wait"))
        return wait_for(rest, out, why);
    return not_understood(why, "no rule covers", s);
}

int plain_parse_step(struct span s, struct plain_step *out, struct err *why)
{
    *out = (struct plain_step){0};
    if (words_is(s, 0, "please|now|next"))
        s = words_part(s, 1, s.n);
    if (s.n < 2)
        return not_understood(why, "no rule covers", s);
    int status = parse_verb(s, out, why);
    if (status < 0)
        plain_step_free(out);
    return status;
}

void plain_step_free(struct plain_step *s)
{
    free(s->what);
    free(s->role);
    free(s->whole);
    free(s->in);
    free(s->row);
    free(s->value);
    for (int i = 0; i < s->levels; i++)
        free(s->path[i]);
    *s = (struct plain_step){0};
}
