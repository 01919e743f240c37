/* bench.c - `holorun bench`: measures speed and compares it with the limit that bounds it; src/bench does the
 * measuring. */
#include "cmd/commands.h"

#include "base/pool.h"
#include "bench/bench.h"
#include "bench/random.h"
#include "remote/endpoint.h"

#include <stdio.h>
#include <string.h>

static const struct option_spec options[] = {
    MODEL_OPTIONS(struct bench),
    {"random", 0, OPTION_TEXT, offsetof(struct bench, random), "SIZES", 0, 64, NULL,
     "use synthetic weights of the sizes of holotron-12b, holotron4-30b, qwen3.5-0.8b, qwen3.5-4b, "
     "qwen3.5-9b, qwen3.5-35b-a3b or tiny instead of a checkpoint",
     NULL},
    {"section", 's', OPTION_TEXT, offsetof(struct bench, section), "NAME", 0, 32, "all",
     "what to measure: peak, kernels, vision, prefill, decode, concurrency, session, step, drift or all. "
     "Not part of all: fleet (100 sessions on one machine), threads (one session per thread), elements "
     "(reading the elements of visible windows: time, and tokens of their text), loop (eight steps with the "
     "flight page in Chromium, by phase, next to xdotool and playwright), and for "
     "comparisons with other programs peers, peers-prompt, peers-decode or peers-tile",
     NULL},
    {"only", 0, OPTION_TEXT, offsetof(struct bench, only), "TEXT", 0, 256, NULL,
     "with the sections kernels and fleet: measure only rows whose names contain this text", NULL},
    {"repeat", 'r', OPTION_INT, offsetof(struct bench, repeat), "N", 1, 1000, "5",
     "minimum number of runs per figure; 1 only checks that everything works", NULL},
    {"text", 0, OPTION_TEXT, offsetof(struct bench, text), "FILE", 0, 4096, NULL,
     "with --section drift: evaluate each option on this text against f32 with the stored weights: KL "
     "divergence, agreement of the most likely token, and perplexity, with 95 % intervals over windows",
     NULL},
    {"choices", 0, OPTION_TEXT, offsetof(struct bench, choices), "LIST", 0, 1024, NULL,
     "with --text: only these options, for example stored,int4,stored+kv-fp8; an unknown name lists all",
     NULL},
    {"window", 0, OPTION_INT, offsetof(struct bench, window), "N", 2, 8192, "512",
     "with --text: tokens per window", NULL},
    {"from", 0, OPTION_INT, offsetof(struct bench, from), "N", 0, 1000000, "0",
     "with --text: the first window, to continue a measurement", NULL},
    {"windows", 0, OPTION_INT, offsetof(struct bench, windows), "N", 1, 1000000, "16",
     "with --text: maximum number of windows", NULL},
    {"json", 'j', OPTION_FLAG, offsetof(struct bench, json),
     .help = "print one JSON object per line on stdout"},
    ENDPOINT_OPTIONS(struct bench),
    DIALECT_OPTION(struct bench),
    {"agents", 0, OPTION_INT, offsetof(struct bench, agents), "N", 1, 1024, "64",
     "with --base-url: maximum number of simultaneous agents", NULL},
    {"bound", 0, OPTION_NUMBER, offsetof(struct bench, bound), "SECONDS", 0.01, 3600, "5",
     "with --base-url: highest acceptable p95 of the step time", NULL},
    {"pause", 0, OPTION_NUMBER, offsetof(struct bench, pause), "SECONDS", 0, 600, "1",
     "with --base-url: pause between steps, which stands for acting and settling", NULL},
    {"seconds", 0, OPTION_NUMBER, offsetof(struct bench, seconds), "SECONDS", 0.1, 86400, "30",
     "with --base-url: duration for each number of agents", NULL},
    {0},
};

const struct command bench_command = {
    "bench",
    "",
    "measure speed and compare it with the limits of this machine",
    "Times are the median and the minimum of several runs. The limits are measured first: the rate of "
    "arithmetic in registers and the memory bandwidth; a model that fits in the caches can exceed the "
    "latter.\n"
    "The section step measures one step of the agent without a display; the record of every run has its "
    "times for settling, capture and acting, and the section loop measures eight of them in a browser.\n"
    "With --base-url, simulated agents take steps with a model behind an address. Their number grows until "
    "the p95 of the step time exceeds --bound.",
    "holorun bench\nholorun bench --section decode --threads 1 --json\n"
    "holorun bench --device cuda --random holotron-12b --section fleet\n"
    "holorun bench --section drift --text README.md --windows 4\n"
    "holorun bench --base-url http://127.0.0.1:8000/v1 --agents 256 --bound 4\n",
    options,
    cmd_bench};

static int check(const struct bench *k, int n, struct err *e)
{
    static const char names[] = "all|peak|kernels|vision|prefill|decode|concurrency|session|step|drift|fleet|"
                                "threads|elements|loop|peers|peers-prompt|peers-decode|peers-tile";
    if (n == 0 && text_choice(names, k->section) < 0)
        return err_set(e, ERR_USAGE, "unknown section '%s': use %s", k->section, names);
    if (n == 0 && (k->text != NULL) > !strcmp(k->section, "drift"))
        return err_set(e, ERR_USAGE, "--text '%s' needs --section drift", k->text);
    if (n == 0 && k->text && k->random)
        return err_set(e, ERR_USAGE, "--text needs trained weights: remove --random %s", k->random);
    if (n == 0 && k->random && !random_find(k->random, e))
        return -1;
    return n;
}

static int measure(struct bench *k, struct err *e)
{
    k->b = backend_open(k->device, k->isa, 0, k->pool, e);
    if (!k->b)
        return -1;
    bench_heading(k);
    bench_peak(k);
    if (bench_has_section(k, "kernels"))
        bench_kernels(k);
    return text_choice("peak|kernels", k->section) >= 0 ? 0 : bench_model(k, e);
}

int cmd_bench(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct bench k = {0};
    int n = options_parse(&bench_command, &k, argc, argv, &e);
    n = check(&k, n, &e);
    if (n < 0)
        return options_refuse(&bench_command, &e);
    if (ENDPOINT_GIVEN(k)) {
        const struct endpoint_options far = ENDPOINT_AT(k);
        return bench_endpoint(&k, &far, &e) ? options_failed(&e) : 0;
    }
    if (!strcmp(k.section, "elements"))
        return bench_elements(&k, &e) ? options_failed(&e) : 0;
    if (!strcmp(k.section, "loop"))
        return bench_loop(&k, &e) ? options_failed(&e) : 0;
    if (k.text)
        return bench_rounding(&k, &e) ? options_failed(&e) : 0;
    k.pool = pool_new(k.threads);
    int rc = measure(&k, &e);
    backend_free(k.b);
    pool_free(k.pool);
    return rc ? options_failed(&e) : 0;
}
