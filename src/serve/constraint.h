/* constraint.h - the grammar of a constrained reply: a schema, a tool call, a dialect.
 *
 * Compiled grammars are cached, each used by one request at a time, because the token masks that they have
 * computed are more expensive than the automaton: up to 16 grammars and 64 MiB. The grammar of one reply is
 * limited to 64 MiB. */
#pragma once

#include "grammar/grammar.h"
#include "serve/body.h"

struct constraints;

struct constraints *constraints_new(const struct tokenizer *t);
void constraints_free(struct constraints *c);
/* Frees the cached grammars; from now on only grammars of this tokenizer are cached. */
void constraints_flush(struct constraints *c, const struct tokenizer *t);

struct constraint {          /* a grammar in use by a request */
    struct grammar *grammar; /* NULL: unconstrained */
    uint64_t hash;
    const struct tokenizer *tokenizer;
};

/* Acquires the grammar of a request. Returns -1 with ERR_USAGE if the constraint is not regular or exceeds a
 * limit, ERR_ENV if the grammars of all requests are too large, ERR_STOPPED if the client is gone. */
int constraint_acquire(struct constraints *c, const struct chat_body *b, const struct chat_template *template,
                       const struct tokenizer *t, struct constraint *out, struct err *e);
void constraint_release(struct constraints *c, struct constraint *used);
