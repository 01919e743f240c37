/* models.c - `holorun models`: lists the known models with their purpose, size and estimated time of a step
 * on this machine.
 *
 * A step reads one screenshot and TEXT_TOKENS tokens of text and generates REPLY_TOKENS tokens.  Its time is
 * the arithmetic divided by the measured rate of products, plus the bytes divided by the measured memory
 * bandwidth: an estimate as by `plan`, for models that have not been downloaded. */
#include "cmd/commands.h"

#include "base/bar.h"
#include "base/json.h"
#include "bench/bench.h"
#include "capacity/memory.h"
#include "checkpoint/known.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_TOKENS = 300, REPLY_TOKENS = 100 };

struct settings {
    double bandwidth, flops;
    int threads;
    bool json;
};

static const struct option_spec options[] = {
    {"bandwidth", 0, OPTION_NUMBER, offsetof(struct settings, bandwidth), "GB/S", 0, 1e6, "0",
     "memory bandwidth; 0 to measure this machine", NULL},
    {"flops", 0, OPTION_NUMBER, offsetof(struct settings, flops), "TFLOP/S", 0, 1e6, "0",
     "rate of bf16 products; 0 to measure this machine", NULL},
    {"threads", 0, OPTION_INT, offsetof(struct settings, threads), "N", 0, 256, "0",
     "threads for measuring, 0 for one per core", "HOLORUN_THREADS"},
    JSON_OPTION(struct settings),
    {0},
};

const struct command models_command = {
    "models",
    "",
    "list the models that 'pull' knows by name, and whether they fit this machine",
    "The time of a step (reading a screenshot of 1920x1080, writing 100 tokens) is estimated from the "
    "model's size and the speed of this machine, measured now; it is a lower limit. 'fits' names the "
    "storage type of the weights that fits in the free memory of this machine. Text models take no steps: "
    "they answer with 'ask' and 'serve', without images. 'holorun help dialects' lists the dialect of each "
    "model.",
    "holorun models\nholorun models --json | jq -r '.[] | select(.fits) | .name'\n",
    options,
    cmd_models};

static double step_seconds(const struct known_model *m, double bandwidth, double flops, double bits)
{
    double products = 2e6 * (m->active * (m->tokens + TEXT_TOKENS) + m->vision * m->patches);
    double bytes = m->active * 1e6 * bits / 8 * REPLY_TOKENS;
    return products / flops + bytes / bandwidth;
}

int cmd_models(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    int n = options_parse(&models_command, &s, argc, argv, &e);
    if (n < 0)
        return options_refuse(&models_command, &e);
    double bandwidth = s.bandwidth * 1e9, flops = s.flops * 1e12;
    if (bench_rates(s.threads, &bandwidth, &flops, &e))
        return options_failed(&e);
    double room = (double)memory_available();
    json_auto_t *list = json_array();
    if (!s.json)
        printf("%-19s %7s  %-5s %-11s %-6s  %-18s %s\n", "name", "GB", "fits", "a step", "here", "licence",
               "for");
    for (const struct known_model *m = known_models; m->name; m++) {
        char *folder = known_pulled(m->name, NULL), step[32] = "-";
        double bits = 0, seconds = 0;
        const char *form = known_fits(m, room, &bits);
        if (form && !known_is_text(m))
            bar_time(seconds = step_seconds(m, bandwidth, flops, bits), step);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:f, s:s?, s:b, s:f, s:s?}", "name",
                                              m->name, "repository", m->repo, "for", m->purpose, "licence",
                                              m->licence, "gb", m->gb, "fits", form, "text_only",
                                              known_is_text(m), "step_seconds", seconds, "folder", folder));
        if (!s.json)
            printf("%-19s %7.1f  %-5s %-11s %-6s  %-18s %s\n", m->name, m->gb, form ? form : "no", step,
                   folder ? "pulled" : "-", m->licence, m->purpose);
        free(folder);
    }
    if (s.json) {
        json_print(list, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
    }
    return 0;
}
