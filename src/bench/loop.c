/* loop.c - the time of the whole loop: eight interactions with the flight page in Chromium, with scripted
 * replies.
 *
 * Each run has a private desktop with a fresh browser, and the page's title says whether it was right.
 * Programs take turns, so that the load of the machine is the same for all. The phases are those that
 * `holorun run --json` prints: start is the time of the process outside the run, think is seeing, reading and
 * deciding, rest is the time of the run in no phase. For comparison xdotool and PyPI's playwright do the
 * same, if they are installed. */
#include "bench/bench.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "desk/desk.h"
#include "screen/screen.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 101, OUTPUT_BYTES = 64 << 10, PAGE_SECONDS = 60, RUN_SECONDS = 120, READY_MS = 1500 };

#define TASK  "Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima"
#define TITLE "BOOKED Paris>Rome|12 May|9:40|Ana Lima"

/* replies in thousandths of the screen */
#define SAY(name, arguments) "{\"name\": \"" name "\", \"arguments\": {" arguments "}}\n"
#define SAY_WRITE(x, y, text)                                                                                \
    SAY("write_at_desktop",                                                                                  \
        "\"content\": \"" text "\", \"element\": \"\", \"overwrite\": true, \"x\": " x ", \"y\": " y)
#define SAY_CLICK(x, y) SAY("click_desktop", "\"element\": \"\", \"x\": " x ", \"y\": " y)
static const char replies[] = SAY_WRITE("288", "217", "Paris") SAY_WRITE("434", "412", "Rome")
    SAY_WRITE("286", "596", "12 May") SAY_CLICK("289", "790") SAY_CLICK("437", "588")
        SAY_WRITE("417", "481", "Ana Lima") SAY_CLICK("164", "665") SAY("answer", "\"content\": \"Booked.\"");

/* The shell commands run with PROGRAM and PAGE in the environment. */
#define BROWSER                                                                                              \
    "root=; [ $(id -u) -ne 0 ] || root='--no-sandbox --test-type'; exec chromium $root "                     \
    "--user-data-dir=\"$HOME/profile\" --kiosk --no-first-run --no-default-browser-check "                   \
    "--password-store=basic --disable-gpu --disable-dev-shm-usage --disable-extensions --disable-sync "      \
    "--disable-component-update --disable-background-networking --allow-file-access-from-files "             \
    "--remote-debugging-port=0 \"$PAGE\""
#define RUN                                                                                                  \
    "exec \"$PROGRAM\" run '" TASK "' --fake \"$HOME/replies\" --dialect holo31 --plain no --json -q "       \
    "--confirm yes-to-all --runs \"$HOME/runs\" "
#define WRITE(x, y, text) "mousemove " x " " y " click 1 $click key ctrl+a type --args 1 '" text "' $step "
#define CLICK(x, y)       "mousemove " x " " y " click 1 $step "
#define XDOTOOL(click, step)                                                                                 \
    "click='" click "' step='" step "'; exec xdotool " WRITE("184", "104", "Paris")                          \
        WRITE("278", "198", "Rome") WRITE("183", "286", "12 May") CLICK("185", "379") CLICK("280", "282")    \
            WRITE("267", "231", "Ana Lima") CLICK("105", "319")
#define PLAYWRIGHT                                                                                           \
    "exec python3 -c \"\n"                                                                                   \
    "import os\n"                                                                                            \
    "from playwright.sync_api import sync_playwright\n"                                                      \
    "with sync_playwright() as p:\n"                                                                         \
    "    port = open(os.environ['HOME'] + '/profile/DevToolsActivePort').readline().strip()\n"               \
    "    b = p.chromium.connect_over_cdp('http://127.0.0.1:' + port)\n"                                      \
    "    page = b.contexts[0].pages[0]\n"                                                                    \
    "    def write(x, y, text):\n"                                                                           \
    "        page.mouse.click(x, y)\n"                                                                       \
    "        page.keyboard.press('Control+a')\n"                                                             \
    "        page.keyboard.type(text)\n"                                                                     \
    "    write(184, 104, 'Paris'); write(278, 198, 'Rome'); write(183, 286, '12 May')\n"                     \
    "    page.mouse.click(185, 379); page.mouse.click(280, 282)\n"                                           \
    "    write(267, 231, 'Ana Lima'); page.mouse.click(105, 319); page.title()\n\""

static const struct contender {
    const char *name, *command;
    const char *needs; /* a shell command that succeeds if it is installed; NULL: it is */
    bool prints;       /* its phases as JSON */
} contenders[] = {
    {"holorun", RUN, NULL, true},
    {"holorun --settle-quiet 50", RUN "--settle-quiet 50", NULL, true},
    {"xdotool without waits", XDOTOOL("", ""), "command -v xdotool", false},
    {"xdotool with usual waits", XDOTOOL("sleep 0.1", "sleep 0.5"), "command -v xdotool", false},
    {"playwright, clicks and keys", PLAYWRIGHT, "python3 -c 'import playwright'", false},
};
enum { CONTENDERS = sizeof contenders / sizeof *contenders };

enum column { WALL, START, SETTLE, ACT, THINK, REST, COLUMNS };
static const char *const columns[COLUMNS] = {"wall", "start", "settle", "act", "think", "rest"};

struct outcome {
    double ms[COLUMNS][RUNS_MAX];
    int n, right;
    bool missing;
};

/* ---- one run --------------------------------------------------------------------------------------- */

static double phase(const json_t *ms, const char *name)
{
    return json_number_value(json_object_get(ms, name));
}

/* Adds the phases of the last line of the output. Returns -1 with e if it is not the outcome of a run. */
static int add_phases(struct outcome *o, double wall, const struct buf *out, struct err *e)
{
    const char *from = strstr(out->data, "{\"status\"");
    json_auto_t *all = from ? json_loads(from, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    const json_t *ms = json_object_get(all, "ms");
    double run = 1000 * json_number_value(json_object_get(all, "seconds"));
    if (ms) {
        double think = phase(ms, "see") + phase(ms, "read") + phase(ms, "decide");
        o->ms[START][o->n] = wall - run;
        o->ms[SETTLE][o->n] = phase(ms, "settle");
        o->ms[ACT][o->n] = phase(ms, "act");
        o->ms[THINK][o->n] = think;
        o->ms[REST][o->n] = run - think - phase(ms, "settle") - phase(ms, "act");
    }
    return ms ? 0 : err_set(e, ERR_FAILED, "the run did not begin: %.300s", out->data);
}

static bool is_booked(void *arg, const char *title, const char *class)
{
    (void)arg;
    (void)class;
    return strstr(title, TITLE) != NULL;
}

/* Returns whether the page shows the booking, which may take a moment. */
static bool booked(struct screen *s)
{
    for (int64_t start = clock_ns(); clock_ms_since(start) < READY_MS; clock_sleep_ms(20))
        if (screen_each_window(s, is_booked, NULL, NULL) == 1)
            return true;
    return false;
}

static int drive(struct desk *d, const struct contender *c, const char *const *env, struct outcome *o,
                 struct err *e)
{
    autobuf out = buf_of(OUTPUT_BYTES);
    int code = 0;
    struct screen *s = screen_open(&(struct screen_options){.display = desk_display(d)}, e);
    autofree char *path = xasprintf("%s/replies", desk_home(d));
    int rc = !s || file_write(path, replies, sizeof replies - 1, e) ? -1 : 0;
    int64_t start = clock_ns();
    rc = rc ? -1 : desk_run(d, c->command, env, RUN_SECONDS, NULL, &code, &out, e);
    o->ms[WALL][o->n] = clock_ms_since(start);
    if (rc == 0 && c->prints)
        rc = add_phases(o, o->ms[WALL][o->n], &out, e);
    o->right += rc == 0 && booked(s);
    o->n++;
    screen_close(s);
    return rc;
}

static int run_once(const struct contender *c, const char *const *env, struct outcome *o, struct err *e)
{
    int code = 0;
    struct desk *d = desk_open(&(struct desk_options){.display = "xvfb:640x480", .env = env}, e);
    if (!d)
        return -1;
    int rc = c->needs ? desk_run(d, c->needs, NULL, PAGE_SECONDS, NULL, &code, NULL, e) : 0;
    o->missing = code != 0;
    if (rc == 0 && !o->missing) {
        rc = desk_start(d, BROWSER, e) || desk_wait_window(d, "^Flights", PAGE_SECONDS, NULL, e) ? -1 : 0;
        if (rc == 0)
            clock_sleep_ms(READY_MS);
        rc = rc ? -1 : drive(d, c, env, o, e);
    }
    desk_close(d);
    return rc;
}

/* ---- all runs -------------------------------------------------------------------------------------- */

static void print_row(const struct bench *k, const struct contender *c, struct outcome *o)
{
    double median[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        median[i] = o->n ? bench_timing(o->ms[i], o->n).median : 0;
    if (k->json && !o->missing) {
        printf("{\"section\": \"loop\", \"name\": \"%s\", \"runs\": %d, \"right\": %d", c->name, o->n,
               o->right);
        for (int i = 0; i < (c->prints ? COLUMNS : 1); i++)
            printf(", \"%s_ms\": %.1f", columns[i], median[i]);
        printf("}\n");
    } else if (!k->json && o->missing) {
        printf("%-28s not installed\n", c->name);
    } else if (!k->json) {
        printf("%-28s %4d/%d", c->name, o->right, o->n);
        for (int i = 0; i < (c->prints ? COLUMNS : 1); i++)
            printf(" %8.0f", median[i]);
        printf("\n");
    }
}

static int measure_all(const struct bench *k, const char *const *env, struct outcome *all, struct err *e)
{
    int rc = 0, rounds = k->repeat < RUNS_MAX ? k->repeat : RUNS_MAX;
    for (int r = 0; r < rounds && rc == 0; r++)
        for (int i = 0; i < CONTENDERS && rc == 0; i++)
            rc = all[i].missing ? 0 : run_once(&contenders[i], env, &all[i], e);
    if (!k->json)
        printf("%-28s %6s %8s %8s %8s %8s %8s %8s  ms, medians\n", "loop", "right", "wall", "start", "settle",
               "act", "think", "rest");
    for (int i = 0; i < CONTENDERS && rc == 0; i++)
        print_row(k, &contenders[i], &all[i]);
    return rc;
}

int bench_loop(const struct bench *k, struct err *e)
{
    autofree char *exe = file_exe_dir(), *page = xasprintf("%s/assets/demo/flight.html", exe);
    autofree char *program = xasprintf("PROGRAM=%s/holorun", exe),
                  *url = xasprintf("PAGE=file://%s?seed=1000102", page);
    const char *const env[] = {program, url, NULL};
    autofree struct outcome *all = xcalloc(CONTENDERS, sizeof *all);
    int rc = file_exists(page)
                 ? desks_begin(e)
                 : err_set(e, ERR_ENV, "there is no '%s': run the program of a source tree", page);
    if (rc == 0) {
        rc = measure_all(k, env, all, e);
        desks_end();
    }
    return rc;
}
