/* constraint.h - the grammar of a reply that a request asks for: a schema, a call of a tool, a dialect.
 *
 * Compiled grammars are kept, each used by one request at a time, because the masks that they have computed
 * are worth more than the automaton: up to 16, and 64 MiB.  The grammar of one reply has 64 MiB at most.
 */
#ifndef HOLORUN_SERVE_CONSTRAINT_H
#define HOLORUN_SERVE_CONSTRAINT_H

#include "grammar/grammar.h"
#include "serve/body.h"

struct constraints;

struct constraints *constraints_new(const struct tokenizer *t);
void constraints_free(struct constraints *c);
/* Frees what is kept; from now on only grammars of this tokenizer are. */
void constraints_flush(struct constraints *c, const struct tokenizer *t);

struct constraint {          /* one that is in use */
    struct grammar *grammar; /* NULL: none asked for */
    uint64_t hash;
    const struct tokenizer *tokenizer;
};

/* Fails with ERR_USAGE for a request beyond a regular grammar or its limits; ERR_ENV when the grammars of all
 * requests are too large; ERR_STOPPED when the client has gone. */
int constraint_take(struct constraints *c, const struct chat_body *b, const struct chat_template *template,
                    const struct tokenizer *t, struct constraint *out, struct err *e);
void constraint_give(struct constraints *c, struct constraint *used);

#endif
