/* shard.c - determines the shard of a suite that this process runs, and selects its tests.
 *
 * Shards run independently. Each test belongs to exactly one, because its shard is computed from its id
 * alone, or from the durations in the same results.json.
 *
 * "auto" reads the variables that a scheduler sets for the tasks of an array:
 *
 *   Slurm, array job       SLURM_ARRAY_TASK_ID, _MIN, _STEP, _COUNT      any first number
 *   Slurm, within a job    SLURM_PROCID, SLURM_NTASKS                    from 0
 *   Kubernetes             JOB_COMPLETION_INDEX, the number is given     from 0
 *   GitLab                 CI_NODE_INDEX, CI_NODE_TOTAL                  from 1
 *   Buildkite              BUILDKITE_PARALLEL_JOB, _COUNT                from 0
 *   CircleCI               CIRCLE_NODE_INDEX, CIRCLE_NODE_TOTAL          from 0
 *   Azure                  SYSTEM_JOBPOSITIONINPHASE, SYSTEM_TOTALJOBSINPHASE  from 1
 *   AWS Batch              AWS_BATCH_JOB_ARRAY_INDEX, _SIZE             from 0 */
#include "qa/suite/private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SHARDS = 99999 };

static const struct scheduler_env {
    const char *name, *index, *count; /* count NULL: given by --shard auto/N */
    int first;                        /* its first index */
} schedulers[] = {
    {"Slurm's array", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", 0},
    {"Slurm's tasks", "SLURM_PROCID", "SLURM_NTASKS", 0},
    {"Kubernetes", "JOB_COMPLETION_INDEX", NULL, 0},
    {"GitLab", "CI_NODE_INDEX", "CI_NODE_TOTAL", 1},
    {"Buildkite", "BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0},
    {"CircleCI", "CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0},
    {"Azure", "SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE", 1},
    {"AWS Batch", "AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", 0},
};
enum { SLURM_ARRAY, SLURM_TASKS, SCHEDULERS = sizeof schedulers / sizeof *schedulers };

/* ---- the shard of this process ------------------------------------------------------------------- */

/* Reads the number in a variable. Returns 0 if it is not set; -1 with *e if it is not a number. */
static int read_number(const char *variable, int *out, struct err *e)
{
    const char *text = getenv(variable);
    char *end;
    if (!text || !*text)
        return 0;
    long v = strtol(text, &end, 10);
    if (*end || v < 0 || v > MOST_SHARDS)
        return err_set(e, ERR_USAGE, "--shard auto: %s is '%.40s'; expected a number up to %d", variable,
                       text, MOST_SHARDS);
    *out = (int)v;
    return 1;
}

/* Computes the index within an array job, whose task numbers start anywhere and may have steps: 3, 5, 7 are
 * three tasks. */
static int slurm_array(int *index, struct err *e)
{
    int least = 0, step = 1;
    if (read_number("SLURM_ARRAY_TASK_MIN", &least, e) < 0 ||
        read_number("SLURM_ARRAY_TASK_STEP", &step, e) < 0)
        return -1;
    if (step < 1 || *index < least || (*index - least) % step)
        return err_set(e, ERR_USAGE,
                       "--shard auto: SLURM_ARRAY_TASK_ID is %d, which is not in the array that begins with "
                       "%d in steps of %d",
                       *index, least, step);
    *index = (*index - least) / step;
    return 0;
}

/* Reads the variables of one scheduler. Returns 1 if they determine the shard; 0 if they are not set. */
static int ask_scheduler(int which, int given, struct shard *out, struct err *e)
{
    const struct scheduler_env *k = &schedulers[which];
    int index = 0, count = given, there = read_number(k->index, &index, e);
    if (there > 0 && k->count)
        there = read_number(k->count, &count, e);
    if (there <= 0)
        return there;
    if (!k->count && !given)
        return err_set(e, ERR_USAGE, "--shard auto: %s gives no number of shards; write --shard auto/N",
                       k->name);
    if (given && count != given)
        return err_set(e, ERR_USAGE, "--shard auto/%d: %s has %d tasks", given, k->name, count);
    if (which == SLURM_ARRAY && slurm_array(&index, e))
        return -1;
    index -= k->first;
    if (index < 0 || index >= count)
        return err_set(e, ERR_USAGE, "--shard auto: %s is %s of %d tasks", k->index, getenv(k->index), count);
    *out = (struct shard){index + 1, count, k->name};
    return 1;
}

/* Finds the scheduler that sets the shard. One with a single task counts only if no other is found; all
 * others must agree. Within an array job, SLURM_PROCID is ignored. */
static int find_scheduler(int given, struct shard *out, struct err *e)
{
    *out = (struct shard){0};
    for (int i = 0; i < SCHEDULERS; i++) {
        struct shard found = {0};
        if (i == SLURM_TASKS && getenv("SLURM_ARRAY_TASK_ID"))
            continue;
        int there = ask_scheduler(i, given, &found, e);
        if (there < 0)
            return -1;
        if (!there || (found.of == 1 && out->of))
            continue;
        if (out->of > 1 && (found.which != out->which || found.of != out->of))
            return err_set(e, ERR_USAGE,
                           "--shard auto: %s gives shard %d of %d, %s %d of %d; write --shard I/N", out->from,
                           out->which, out->of, found.from, found.which, found.of);
        *out = found;
    }
    return out->of ? 0
                   : err_set(e, ERR_USAGE,
                             "--shard auto: no scheduler's variables are set (Slurm, Kubernetes, GitLab, "
                             "Buildkite, CircleCI, Azure, AWS Batch); write --shard I/N");
}

/* Parses "2/5"; "auto" and "auto/5" read the environment variables of a scheduler. */
static int shard_find(const char *text, struct shard *out, struct err *e)
{
    int which = 0, of = 0, end = 0;
    if (!strcmp(text, "auto"))
        return find_scheduler(0, out, e);
    if (sscanf(text, "auto/%5d%n", &of, &end) == 1 && end && !text[end] && of >= 1)
        return find_scheduler(of, out, e);
    if (!isdigit((unsigned char)*text) || sscanf(text, "%5d/%5d%n", &which, &of, &end) != 2 || text[end] ||
        which < 1 || which > of)
        return err_set(e, ERR_USAGE,
                       "expected a shard as 2/5 (the second of five), auto or auto/5, not '%.40s'", text);
    *out = (struct shard){which, of, NULL};
    return 0;
}

/* ---- the tests of the shard ---------------------------------------------------------------------- */

static uint64_t fnv1a(uint64_t h, const char *s)
{
    for (; s && *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}
static const uint64_t FNV_BASIS = 0xcbf29ce484222325u;

uint64_t suite_hash_text(const char *text)
{
    return fnv1a(FNV_BASIS, text);
}

struct timed {
    struct test *t;
    double seconds;
};

static int longest_first(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->seconds < y->seconds || x->seconds > y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    return (x->t > y->t) - (x->t < y->t); /* order of the file */
}

/* Distributes all tests of the suite, including unselected ones, so that the shards do not depend on other
 * conditions. A test without a duration counts as the average. */
static int by_time(struct suite *s, const char *path, const struct shard *shard, struct err *e)
{
    struct earlier p;
    if (earlier_read(path, &p, e)) {
        earlier_free(&p);
        return -1;
    }
    autofree struct timed *tests = xcalloc((unsigned long)s->n + 1, sizeof *tests);
    double sum = 0, *load = xcalloc((unsigned long)shard->of, sizeof *load);
    int known = 0;
    for (int i = 0; i < s->n; i++) {
        tests[i] = (struct timed){&s->tests[i], earlier_find(&p, s->name, s->tests[i].id).seconds};
        known += tests[i].seconds >= 0;
        sum += tests[i].seconds >= 0 ? tests[i].seconds : 0;
    }
    for (int i = 0; i < s->n; i++)
        if (tests[i].seconds < 0)
            tests[i].seconds = known ? sum / known : 1;
    qsort(tests, (size_t)s->n, sizeof *tests, longest_first);
    for (int i = 0; i < s->n; i++) {
        int least = 0;
        for (int k = 1; k < shard->of; k++)
            if (load[k] < load[least])
                least = k;
        load[least] += tests[i].seconds;
        tests[i].t->selected &= least == shard->which - 1;
    }
    free(load);
    earlier_free(&p);
    return 0;
}

int select_by_shard(struct suite *s, const struct suite_selection *c, struct err *e)
{
    if (shard_find(c->shard, &s->shard, e))
        return -1;
    if (c->shard_times)
        return by_time(s, c->shard_times, &s->shard, e);
    for (int i = 0; i < s->n; i++)
        s->tests[i].selected &=
            fnv1a(FNV_BASIS, s->tests[i].id) % (uint64_t)s->shard.of == (uint64_t)s->shard.which - 1;
    return 0;
}
