/* fold.c - folds text to plain lower-case letters for matching; see fold.h.
 *
 * Compatibility decomposition (full-width, mathematical, circled letters), then accents are removed, then
 * letters that look Latin become Latin, then the rest is composed again, so that Hangul and kana are
 * unchanged. */
#include "gate/fold.h"

#include "base/err.h"
#include "base/utf8.h"

#include <ctype.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>

/* Pairs of a letter and the Latin letter that it looks like. */
static const char look_alikes[] =
    "аaвbсcеeһhнhіiїiјjкkӏlмmпnоoрpԛqгrѕsтtѵvԝwхxуyԁdѡwьb"                     /* Cyrillic */
    "αaβbεeγyηnιiκkνvοoρpτtυuχxωwϲcϳj"                                         /* Greek */
    "ոnսuհhօoզqցgքpլl"                                                         /* Armenian */
    "ꭰdꭱrꭲtꭺaꭻjꭼeꮃwꮇmꮋhꮐgꮓzꮪsꮩvꮮlꮲpꮯcꮶkꮾb" /* Cherokee */
    "ɑaʙbɡgɢgʜhıiɪiʟlɴnɵoʀrʏyꜱsᴀaᴄcᴅdᴇeᴊjᴋkᴍmᴏoᴘpᴛtᴜuᴠvᴡwᴢzłlđdħhøo"; /* small capitals and strokes */

static gunichar plain(gunichar c)
{
    for (const char *p = look_alikes; c >= 0x80 && *p;) {
        gunichar from = g_utf8_get_char(p);
        p = g_utf8_next_char(p);
        gunichar to = g_utf8_get_char(p);
        p = g_utf8_next_char(p);
        if (from == c && to < 0x80)
            return to;
    }
    return c;
}

static bool is_invisible(gunichar c)
{
    GUnicodeType t = g_unichar_type(c);
    return t == G_UNICODE_FORMAT || t == G_UNICODE_CONTROL || (c >= 0x300 && c < 0x370) || c == 0x115f ||
           c == 0x1160 || c == 0x3164 || (c >= 0xfe00 && c < 0xfe10) || (c >= 0xe0000 && c < 0xe1000);
}

/* Replaces 0 and 1 next to letters by o and l. */
static void fold_digits(char *s)
{
    for (char *p = s; *p; p++) {
        bool inside = (p > s && isalpha((unsigned char)p[-1])) || isalpha((unsigned char)p[1]);
        if (inside && (*p == '0' || *p == '1'))
            *p = *p == '0' ? 'o' : 'l';
    }
}

/* Joins spaced words: "s e n d" and "s.e.n.d" become "send". Needs three letters or more with the same
 * separator. */
static void close_up(char *s)
{
    char *to = s;
    for (const char *p = s; *p;) {
        int n = 0;
        bool starts = p == s || !isalnum((unsigned char)p[-1]);
        while (starts && isalpha((unsigned char)p[2 * n]) && p[2 * n + 1] && strchr(" .-_*", p[2 * n + 1]) &&
               (n == 0 || p[2 * n + 1] == p[1]))
            n++;
        bool last = n > 0 && isalpha((unsigned char)p[2 * n]) && !isalnum((unsigned char)p[2 * n + 1]);
        int letters = n + last, used = last ? 2 * n + 1 : 2 * n - 1;
        if (letters < 3) {
            *to++ = *p++;
            continue;
        }
        for (int i = 0; i < letters; i++)
            *to++ = p[2 * i];
        p += used;
    }
    *to = 0;
}

char *fold_text(const char *text)
{
    gchar *apart = g_utf8_normalize(text, (gssize)utf8_valid_prefix(text, strlen(text)), G_NORMALIZE_ALL);
    GString *s = g_string_new(NULL);
    for (const gchar *p = apart ? apart : ""; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);
        if (c == '\t' || c == '\n' || g_unichar_isspace(c))
            g_string_append_c(s, ' ');
        else if (!is_invisible(c))
            g_string_append_unichar(s, plain(g_unichar_tolower(c)));
    }
    gchar *whole = g_utf8_normalize(s->str, -1, G_NORMALIZE_ALL_COMPOSE);
    char *out = xstrdup(whole ? whole : s->str);
    g_free(whole);
    g_free(apart);
    g_string_free(s, TRUE);
    fold_digits(out);
    close_up(out);
    return out;
}

char *fold_identifier(const char *text)
{
    GString *s = g_string_new(NULL);
    bool lower = false; /* the word began with a lower-case letter */
    for (const char *p = text; *p; p++) {
        bool inside = p > text && isalnum((unsigned char)p[-1]);
        lower = inside ? lower : islower((unsigned char)*p) != 0;
        if (inside && lower && isupper((unsigned char)*p) && islower((unsigned char)p[-1]))
            g_string_append_c(s, ' ');
        g_string_append_c(s, *p == '_' ? ' ' : *p);
    }
    char *out = fold_text(s->str);
    g_string_free(s, TRUE);
    return out;
}
