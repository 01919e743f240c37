/* fuzz_dialect.c - dialect files: any bytes are rejected with a message, or give a complete dialect with
 * valid grammars. Runs in the source directory, because it uses the tokenizer of the embedded model.
 */
#include "actions/action.h"
#include "actions/dialect.h"
#include "require.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tokenizer *tokenizer;

static void use(struct dialect *d)
{
    static const char *const slots[] = {"date",   "d",     "max_steps", "1",      "max_time_s", "1",    "os",
                                        "x",      "width", "1",         "height", "1",          "task", "t",
                                        "schema", "s",     "tools",     "t",      NULL};
    struct err e = ERR_INIT;
    struct step s;
    struct buf out;
    buf_init(&out, 1 << 22);
    require(!dialect_fill(d->system, slots, &out, &e), "a system prompt that was accepted can be filled");
    require(d->schema && d->tool_list && d->name && d->sha256, "a dialect is whole");
    static const char reply[] =
        "{\"thought\": \"t\", \"tool_call\": {\"tool_name\": \"a\", \"x\": 1, \"y\": 2}}";
    action_parse(reply, sizeof reply - 1, d, 100, 100, &s, &e);
    step_free(&s);
    d->screen_w = 640;
    d->screen_h = 480;
    for (int goal = GOAL_STEP; goal <= GOAL_TEXT; goal++) {
        struct grammar *g = dialect_grammar(d, (enum dialect_goal)goal, tokenizer, 0, 0, &e);
        require(g || *e.text, "a grammar that cannot be made says why");
        require(!g || !grammar_finished(g, grammar_start(g)), "a reply is not empty");
        grammar_free(g);
    }
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    if (!tokenizer)
        tokenizer = tokenizer_open("assets/pocket/model", &e);
    if (!tokenizer)
        die(ERR_MODEL, "%s", e.text);
    struct dialect *d = dialect_parse((const char *)data, size, "fuzz", &e);
    require(d || *e.text, "a refusal has a message");
    if (d)
        use(d);
    dialect_free(d);
    return 0;
}
