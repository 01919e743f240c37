/* grammar_xml.c - the grammar of calls in XML (calls.h): an optional line of thought, and one call. */
#include "actions/grammar_impl.h"

/* Matches one letter in both cases: "[pP]". */
static gx_node letter(struct gx *x, char c)
{
    char set[] = {c, (char)(c - 'a' + 'A'), 0};
    return gx_set(x, set);
}

/* Matches text that begins as the word and differs before its last letter. */
static gx_node off_word(struct gx *x, const char *word)
{
    char except[] = {'<', '[', word[1], (char)(word[1] - 'a' + 'A'), 0};
    gx_node other = gx_utf8(x, except, 1, 1);
    return GX_SEQ(x, letter(x, *word), word[2] ? GX_ALT(x, other, off_word(x, word + 1)) : other);
}

/* Matches brackets and following text that does not form a tag of a call.  firsts: first letters of the
 * words. */
static gx_node no_tag(struct gx *x, const char *bracket, const char *firsts, int n, const char *const *words)
{
    gx_node parts[8] = {gx_utf8(x, firsts, 1, 1)};
    for (int i = 0; i < n; i++)
        parts[i + 1] = off_word(x, words[i]);
    return GX_SEQ(x, gx_repeat(x, gx_lit(x, bracket), 1, -1), gx_alt(x, n + 1, parts));
}

/* Matches text between two tags, on one line or several, without tags of calls and special tokens
 * (calls_markup).  In a short text, which is counted, "<" is not followed by any first letter of such a
 * tag. */
static gx_node plain_text(struct gx *x, int min, int max, bool one_line)
{
    static const char *const words[] = {"para", "func", "tool", "invo", "arg"}, *const tool[] = {"tool"};
    gx_node angle = no_tag(x, "<", "<[/|pPfFtTiIaA", max > GX_EXACT ? 5 : 0, words),
            square = no_tag(x, "[", "<[tT/", 1, tool), breaks = gx_set(x, "\\x0a\\x09");
    gx_node unit = GX_ALT(x, gx_utf8(x, "<[", 1, 1), angle, square);
    gx_node open = GX_SEQ(x, gx_repeat(x, gx_set(x, "<["), 1, -1), breaks); /* before a line break */
    return gx_repeat(x, one_line ? unit : GX_ALT(x, unit, breaks, open), min, max);
}

static gx_node xml_value(const struct grammar_builder *l, const struct tool *t, const struct tool_arg *a)
{
    struct gx *x = l->x;
    switch (registry_param(a->id)->type) {
    case PARAM_ENUM:
        return grammar_words(x, a->values, "%s");
    case PARAM_KEY:
        return grammar_chord(x, "+", grammar_chord_length(t));
    case PARAM_STRING:
    case PARAM_ANY:
        return plain_text(x, a->min, a->max, action_is(t->kind, ACTION_ADDRESS));
    default:
        return grammar_json_value(l, t, a);
    }
}

static gx_node xml_parameter(const struct grammar_builder *l, const struct tool *t, const struct tool_arg *a)
{
    struct gx *x = l->x;
    return GX_SEQ(x, grammar_lit(x, "<parameter=%s>\n", a->name), xml_value(l, t, a),
                  gx_lit(x, "\n</parameter>\n"));
}

/* Matches the parameters from i on; both coordinates of a point are given, or none. */
static gx_node xml_parameters(const struct grammar_builder *l, const struct tool *t, int i)
{
    struct gx *x = l->x;
    i = grammar_offered(t, i);
    if (i >= t->nargs)
        return gx_lit(x, "");
    const struct tool_arg *a = &t->args[i];
    gx_node one = xml_parameter(l, t, a);
    int next = grammar_offered(t, i + 1);
    if ((a->id == P_X || a->id == P_X2) && next < t->nargs && (int)t->args[next].id == (int)a->id + 1) {
        one = GX_SEQ(x, one, xml_parameter(l, t, &t->args[next]));
        next++;
    }
    return GX_SEQ(x, a->required ? one : gx_repeat(x, one, 0, 1), xml_parameters(l, t, next));
}

/* Matches a mark, which is one token in some vocabularies and plain text in others. */
static gx_node mark(const struct grammar_builder *l, const char *text)
{
    int32_t id = tokenizer_find(l->t, text);
    return id >= 0 && tokenizer_is_special(l->t, id) ? gx_token(l->x, text) : gx_lit(l->x, text);
}

gx_node grammar_xml_call(const struct grammar_builder *l, const struct tool *t)
{
    struct gx *x = l->x;
    return GX_SEQ(x, grammar_lit(x, "\n<function=%s>\n", t->name), xml_parameters(l, t, 0),
                  gx_lit(x, "</function>\n"));
}

/* Matches a line of thought, and the call. */
gx_node grammar_xml_step(const struct grammar_builder *l, gx_node call)
{
    struct gx *x = l->x;
    gx_node thought = GX_SEQ(x, gx_utf8(x, "<`", 1, MANY), gx_lit(x, "\n\n"));
    return GX_SEQ(x, gx_repeat(x, thought, 0, 1), mark(l, "<tool_call>"), call, mark(l, "</tool_call>"));
}
