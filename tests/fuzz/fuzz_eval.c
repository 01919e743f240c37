/* fuzz_eval.c - any bytes as a grounding set, as results to resume, and as a reply to score. */
#include "eval/eval.h"
#include "require.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void score(const struct eval_set *s, const char *reply)
{
    static struct dialect *dialects[4];
    static const char *const names[] = {"holo3", "holo15", "uitars", "pocket-wide"};
    for (int i = 0; i < s->n; i++) {
        const struct target *t = &s->items[i].target;
        if (t->kind != TARGET_NONE)
            require(target_holds(t, t->at[0], t->at[1]), "a corner belongs to its target");
        for (int k = 0; k < 4; k++) {
            struct eval_answer a = {0};
            dialects[k] = dialects[k] ? dialects[k] : dialect_load(names[k], NULL);
            eval_score(t, dialects[k], reply, 640, 480, &a);
            require(!a.correct || a.placed || t->kind == TARGET_NONE, "a hit needs a position");
            require(!(a.placed && a.wrong_format), "an invalid position");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct eval_set s;
    char *text = xmalloc(size + 1, 1);
    memcpy(text, data, size);
    text[size] = 0;
    if (eval_set_parse(&s, text, size, "fuzz", &e)) {
        require(*e.text, "a refusal has a message");
    } else {
        struct eval_results r = {.fd = -1, .outcomes = xcalloc((unsigned long)s.n, sizeof *r.outcomes)};
        json_t *head = json_object();
        size_t whole;
        struct tally t;
        score(&s, text);
        if (results_parse(&r, text, size, &s, head, &whole, &e))
            require(*e.text, "a refusal has a message");
        require(whole <= size, "whole lines are in the file");
        tally_make(&t, &s, &r);
        json_decref(tally_json(&t));
        tally_free(&t);
        json_decref(head);
        results_close(&r);
    }
    eval_set_free(&s);
    free(text);
    return 0;
}
