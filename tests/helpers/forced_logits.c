/* forced_logits - prints logits of given continuations, decoded token by token like a reply:
 *
 *     forced_logits MODEL [f32] [rows] [isa=NAME] [kv=fp8] [weights=int8] [threads=N] < ids > out
 *
 * Standard input has sequences, each as int32: its length, the length of its prompt, and the ids.  The
 * prompt is prefilled; then all sequences are decoded together, each with its own next id, whatever the
 * model predicts. For each step and each sequence that still has an id, in this order, standard output gets
 * the two best ids with their logits and the logit of the next id (struct best), or with `rows` the whole
 * row of logits.
 *
 * The scripts real_greedy.py and real_logits.py compare the output with llama.cpp's.
 */
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SEQUENCES = 512, MOST_IDS = 1 << 20 };

struct best {
    int32_t id[2];
    float logit[2], fed;
};

struct sequence {
    int32_t n, prompt, *ids;
    struct session *s;
};

static _Noreturn void fail(const char *why)
{
    fprintf(stderr, "forced_logits: %s\n", why);
    exit(1);
}

/* Reads n numbers; returns false at the end of the input. */
static bool read_ids(int32_t *to, size_t n)
{
    size_t got = fread(to, sizeof *to, n, stdin);
    if (got && got != n)
        fail("the input ends inside a sequence");
    return got == n;
}

static int read_sequences(struct sequence *all)
{
    int n = 0;
    int32_t head[2];
    for (; read_ids(head, 2); n++) {
        if (n == MOST_SEQUENCES || head[0] < 1 || head[0] > MOST_IDS || head[1] < 1 || head[1] >= head[0])
            fail("a sequence has a wrong length");
        all[n] = (struct sequence){head[0], head[1], calloc((size_t)head[0], sizeof(int32_t)), NULL};
        if (!all[n].ids || !read_ids(all[n].ids, (size_t)head[0]))
            fail("the input ends inside a sequence");
    }
    return n;
}

static void put(const float *row, int vocab, int32_t fed, bool rows)
{
    struct best b = {{0, -1}, {row[0], -1e30f}, row[fed]};
    for (int32_t i = 1; i < vocab; i++) {
        if (row[i] > b.logit[0])
            b = (struct best){{i, b.id[0]}, {row[i], b.logit[0]}, b.fed};
        else if (row[i] > b.logit[1])
            b = (struct best){{b.id[0], i}, {b.logit[0], row[i]}, b.fed};
    }
    if (rows ? fwrite(row, sizeof *row, (size_t)vocab, stdout) != (size_t)vocab
             : fwrite(&b, sizeof b, 1, stdout) != 1)
        fail("cannot write");
}

/* Writes the logits before id `at` of every sequence that has it, and appends that id.  Returns their
 * number. */
static int step(struct sequence *all, int n, int k, bool rows, struct err *e)
{
    struct session *live[MOST_SEQUENCES];
    int lives = 0, vocab = engine_vocab(session_engine(all[0].s));
    for (int i = 0; i < n; i++)
        if (all[i].prompt + k < all[i].n)
            live[lives++] = all[i].s;
    if (lives && session_try_decode_batch(live, lives, e))
        fail(e->text);
    for (int i = 0; i < n; i++) {
        int at = all[i].prompt + k;
        if (at >= all[i].n)
            continue;
        put(session_logits(all[i].s), vocab, all[i].ids[at], rows);
        if (session_append(all[i].s, &all[i].ids[at], 1, e))
            fail(e->text);
    }
    return lives;
}

int main(int argc, char **argv)
{
    static struct sequence all[MOST_SEQUENCES];
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = argc > 1 ? argv[1] : "", .device = "cpu"};
    bool rounded = false;
    bool rows = false;
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "f32"))
            o.f32 = true;
        else if (!strcmp(argv[i], "rows"))
            rows = true;
        else if (!strncmp(argv[i], "isa=", 4))
            o.isa = argv[i] + 4;
        else if (!strcmp(argv[i], "kv=fp8"))
            o.kv = KV_FP8;
        else if (!strcmp(argv[i], "weights=int8"))
            o.weights = WEIGHTS_INT8;
        else if (!strcmp(argv[i], "activations=int8"))
            rounded = true;
        else if (!strncmp(argv[i], "threads=", 8))
            o.threads = atoi(argv[i] + 8);
        else
            fail("unknown argument");
    }
    int n = read_sequences(all);
    o.activations = o.f32 ? ACTIVATIONS_AUTO : rounded ? ACTIVATIONS_INT8 : ACTIVATIONS_BF16;
    struct engine *g = n ? engine_open(&o, &e) : NULL;
    if (!g)
        fail(n ? e.text : "no sequences");
    for (int i = 0; i < n; i++) {
        all[i].s = session_new(g, 1);
        if (session_append(all[i].s, all[i].ids, all[i].prompt, &e) || session_prefill(all[i].s, &e))
            fail(e.text);
    }
    for (int k = 0; step(all, n, k, rows, &e); k++)
        continue;
    for (int i = 0; i < n; i++) {
        session_free(all[i].s);
        free(all[i].ids);
    }
    engine_close(g);
    return fflush(stdout) ? 1 : 0;
}
