/* doctor.c - `holorun doctor`: checks this machine.
 *
 * Each check results in ok, a warning (works with restrictions) or failed (a run will not work), with the
 * finding and, unless it is ok, the remedy.  The exit code is 3 if the machine or its display failed a check,
 * else 4 if the model did, else 0. */
#include "cmd/commands.h"

#include "atspi/elements.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/feature.h"
#include "base/file.h"
#include "base/image.h"
#include "checkpoint/find.h"
#include "desk/desk.h"
#include "eval/calibrate.h"
#include "model/config.h"
#include "ops/ops.h"
#include "remote/probe.h"
#include "remote/protocol.h"
#include "remote/vqa_remote.h"
#include "screen/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *display, *view, *model;
    ENDPOINT_SETTINGS;
    bool cursor, reach, json;
};

static const struct option_spec options[] = {
    SCREEN_OPTIONS(struct settings),
    {"model", 'm', OPTION_TEXT, offsetof(struct settings, model), "DIR", 0, 4096, NULL,
     "model directory to check; default: the embedded model", "HOLORUN_MODEL"},
    ENDPOINT_OPTIONS(struct settings),
    {"reach", 0, OPTION_FLAG, offsetof(struct settings, reach), NULL, 0, 0, NULL,
     "with --provider: also check its server, as with --base-url; this may cost tokens", NULL},
    JSON_OPTION(struct settings),
    {0},
};

const struct command doctor_command = {
    "doctor",
    "",
    "check display, model and CPU, and suggest fixes",
    "With --base-url the server at that address is checked instead of this machine: its speed, how it "
    "accepts a schema, the number of images per request, its cache, and the coordinate space of its model. "
    "The results are saved in the user's state folder and used from then on, unless --profile FILE is "
    "given. A profile is a JSON object with any of api, constraint, max_images, thinking, send_reasoning, "
    "leave_out, tries, retry_s (seconds for further tries), backoff_s (wait before the first of them), "
    "connect_s, first_byte_s, idle_s, ca_file (certificate of its CA), price {prompt, cached, reply, "
    "currency}, dialect, and request (members to add to every request).\n\n"
    "With --provider only its settings are checked, without a connection: address, key variable, protocol, "
    "dialect, model. --reach also checks the server.",
    "holorun doctor\nholorun doctor --display :1 --json\n"
    "holorun doctor --base-url http://127.0.0.1:8000/v1\n"
    "holorun doctor --provider openai\n",
    options,
    cmd_doctor};

enum status { OK, WARNING, FAILED };
static const char *const status_names[] = {"ok", "warning", "failed"};

enum { MAX_FINDINGS = 32, MAX_NAMES = 16, SLOW_CAPTURE_MS = 50, CAPTURES = 5 };

struct finding {
    const char *name;
    enum status status;
    char *detail;
    const char *remedy; /* NULL if ok, or if the detail contains it */
};

struct report {
    struct finding list[MAX_FINDINGS];
    int n;
    int exit;
};

/* Adds a finding; takes ownership of detail. */
static void add(struct report *r, const char *name, enum status status, char *detail, const char *remedy)
{
    if (r->n == MAX_FINDINGS)
        bug("more than %d checks", MAX_FINDINGS);
    r->list[r->n++] = (struct finding){name, status, detail, status == OK ? NULL : remedy};
}

static void fail(struct report *r, const char *name, enum err_kind kind, const char *detail,
                 const char *remedy)
{
    add(r, name, FAILED, xstrdup(detail), remedy);
    if (r->exit != ERR_ENV)
        r->exit = kind == ERR_MODEL ? ERR_MODEL : ERR_ENV;
}

/* Returns the value of "key: value" in the lines of screen_describe(), "" if absent; the caller frees it. */
static char *fact(const char *lines, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = lines; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
        if (!strncmp(p, key, n) && p[n] == ':')
            return xasprintf("%.*s", (int)strcspn(p + n + 2, "\n"), p + n + 2);
    return xstrdup("");
}

static void check_extensions(struct report *r, const char *facts)
{
    static const struct {
        const char *key, *loss;
    } wanted[] = {
        {"shm",
         "screenshots are sent through the socket; run on the machine of the X server, same user and IPC "
         "namespace"},
        {"xdamage",
         "screen changes are found by comparing frames ten times a second; start the X server with DAMAGE"},
        {"xfixes", "the pointer cannot be drawn into screenshots; start the X server with XFIXES"},
        {"randr", "monitors cannot be told apart; start the X server with RANDR"},
        {"xinput2", "a second keyboard's layout is not noticed; start the X server with XInputExtension"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char *value = fact(facts, wanted[i].key);
        add(r, wanted[i].key, strncmp(value, "yes", 3) ? WARNING : OK, value, wanted[i].loss);
    }
    char *manager = fact(facts, "window manager");
    add(r, "window manager", strcmp(manager, "no") ? OK : WARNING, manager,
        "without a window manager keys go to the window under the pointer; start one, for example openbox");
    char *free_codes = fact(facts, "free keycodes");
    add(r, "free keycodes", atoi(free_codes) > 0 ? OK : WARNING, free_codes,
        "characters that the keyboard layout lacks cannot be typed; free some keycodes with xmodmap");
}

static bool uniform(const struct image *im)
{
    for (long i = 3; i < 3L * im->w * im->h; i++)
        if (im->rgb[i] != im->rgb[i - 3])
            return false;
    return true;
}

static void check_capture(struct report *r, struct screen *s)
{
    struct err e = ERR_INIT;
    struct image im = {0};
    int64_t start = clock_ns();
    for (int i = 0; i < CAPTURES; i++)
        if (screen_capture(s, &im, &e)) {
            fail(r, "screenshot", e.kind, e.text, NULL);
            image_free(&im);
            return;
        }
    double ms = clock_ms_since(start) / CAPTURES;
    char *detail = xasprintf("%dx%d in %.1f ms%s", im.w, im.h, ms, uniform(&im) ? ", a single colour" : "");
    if (uniform(&im))
        add(r, "screenshot", WARNING, detail,
            "the screen is empty; start the program to use, or select another display with --display");
    else
        add(r, "screenshot", ms > SLOW_CAPTURE_MS ? WARNING : OK, detail,
            "select a smaller part of the screen with --view");
    image_free(&im);
}

static void check_pointer(struct report *r, struct screen *s)
{
    struct err e = ERR_INIT;
    int x, y, there_x = 0, there_y = 0;
    struct screen_rect view = screen_view(s);
    if (screen_pointer(s, &x, &y)) {
        fail(r, "pointer", ERR_ENV, "the pointer is not on this screen", "move the pointer to this screen");
        return;
    }
    int64_t start = clock_ns();
    int target_x = x > view.x ? x - 1 : x + 1;
    int failed =
        screen_move(s, target_x, y, &e) || screen_pointer(s, &there_x, &there_y) || screen_move(s, x, y, &e);
    if (failed || there_x != target_x)
        fail(r, "pointer", ERR_ENV, failed ? e.text : "the pointer does not move to the requested position",
             "do not move the mouse during the check");
    else
        add(r, "pointer", OK, xasprintf("moved and moved back in %.1f ms", clock_ms_since(start)), NULL);
}

/* Returns whether the display could be opened. */
static bool check_display(struct report *r, const struct settings *set)
{
    struct err e = ERR_INIT;
    struct screen_options o = {.display = set->display, .view = set->view, .cursor = set->cursor};
    struct screen *s = screen_open(&o, &e);
    if (!s) {
        fail(r, "display", e.kind, e.text, NULL); /* the message contains the remedy */
        return false;
    }
    autobuf facts = buf_of(64 << 10);
    screen_describe(s, &facts);
    autofree char *root = fact(facts.data, "root"), *server = fact(facts.data, "server");
    add(r, "display", OK, xasprintf("%s, %s, %s", screen_name(s), root, server), NULL);
    add(r, "xtest", OK, fact(facts.data, "xtest"), NULL);
    check_extensions(r, facts.data);
    check_capture(r, s);
    check_pointer(r, s);
    if (screen_watch(s, &e))
        add(r, "stop by Escape", WARNING, xstrdup(e.text), "stop a run with Ctrl-C in its terminal");
    else
        add(r, "stop by Escape", OK, xstrdup("twice within 0.6 s"), NULL);
    screen_close(s);
    return true;
}

static void check_model(struct report *r, const char *option)
{
    struct err e = ERR_INIT;
    struct model_config c;
    char *dir = model_find(option, &e);
    bool blind = dir && config_load(&c, dir, NULL) == 0 && !c.vision;
    if (blind)
        add(r, "model", WARNING, dir,
            "this is a text model without a vision encoder: it works with ask and serve, without images; to "
            "work on a screen, use a model with a vision encoder ('holorun models' lists some)");
    else if (dir)
        add(r, "model", OK, dir, NULL);
    else
        fail(r, "model", ERR_MODEL, e.text, NULL);
}

static void check_cpu(struct report *r)
{
    const char *names[MAX_NAMES];
    int n = backend_cpu_list(names, MAX_NAMES);
    autobuf b = buf_of(1024);
    for (int i = 0; i < n; i++)
        buf_printf(&b, "%s%s", i ? " " : "", names[i]);
    bool fast = n > 0 && strcmp(names[n - 1], "ref") != 0;
    add(r, "processor", fast ? OK : WARNING, buf_take(&b),
        "only the slow reference kernels run on this CPU; use a machine with AVX2 or AVX-512");
}

static void check_gpus(struct report *r)
{
    enum { MAX_GPUS = 8 };
    struct gpu found[MAX_GPUS];
    struct err e = ERR_INIT;
    int n = backend_gpu_list(found, MAX_GPUS, &e);
    if (n <= 0) {
        add(r, "GPU", OK, xasprintf("none, the model runs on the CPU: %s", n < 0 ? e.text : "no device"),
            NULL);
        return;
    }
    for (int i = 0; i < n && i < MAX_GPUS; i++) {
        const struct gpu *g = &found[i];
        autofree char *name = xasprintf("cuda:%d", i);
        struct backend *b = backend_open(name, NULL, 0, NULL, &e);
        add(r, "GPU", b ? OK : WARNING,
            xasprintf("%s %s, compute capability %d.%d, %.1f of %.1f GB free%s%s", name, g->name, g->major,
                      g->minor, (double)g->free * 1e-9, (double)g->memory * 1e-9, b ? "" : ": ",
                      b ? "" : e.text),
            "the model runs on the CPU");
        backend_free(b);
    }
}

/* Session buses start the accessibility bus by this file of at-spi2-core. */
static bool names_installed(void)
{
    return file_exists("/usr/share/dbus-1/services/org.a11y.Bus.service");
}

/* Checks the source of names that rules by element use in addition to the model's words. */
static void check_names(struct report *r, const char *display)
{
    enum { ANSWER_MS = 1500 };
    struct err e = ERR_INIT;
    const struct snapshot *s;
    struct elements *x = elements_open(display);
    if (elements_snapshot(x, &(struct elements_scope){.all = true}, ANSWER_MS, &s, &e))
        add(r, "names of elements", WARNING, xstrdup(e.text),
            names_installed()
                ? "start holorun inside the desktop session, so that programs name their elements"
                : "install at-spi2-core, so that programs name their elements");
    else
        add(r, "names of elements", OK,
            s->n ? xasprintf("programs on this display describe %d elements (AT-SPI)", s->n)
                 : xstrdup("an accessibility bus (AT-SPI) is running; no program describes its elements"),
            NULL);
    elements_close(x);
}

static void check_private_names(struct report *r)
{
    bool daemon = desk_bus_installed();
    add(r, "names on private desktops", daemon && names_installed() ? OK : WARNING,
        xstrdup(!daemon             ? "dbus-daemon is missing"
                : names_installed() ? "each desktop starts its own accessibility bus"
                                    : "at-spi-bus-launcher is missing"),
        "programs on private desktops do not describe their elements; on Debian install dbus-daemon and "
        "at-spi2-core");
}

static void check_folders(struct report *r)
{
    static const struct {
        enum file_place place;
        const char *name;
    } places[] = {{PLACE_STATE, "folder for runs"}, {PLACE_RUNTIME, "folder for locks"}};
    for (size_t i = 0; i < 2; i++) {
        struct err e = ERR_INIT;
        char *dir = file_place(places[i].place, &e);
        if (dir)
            add(r, places[i].name, OK, dir, NULL);
        else
            fail(r, places[i].name, ERR_ENV, e.text,
                 "make this user the owner of the folder, or set XDG_STATE_HOME and XDG_RUNTIME_DIR");
    }
}

/* ---- a server ------------------------------------------------------------------------------------ */

/* Measures the coordinate space of the endpoint's dialect with CALIBRATE_GIVE_UP buttons. */
static void check_coordinates(struct report *r, struct vqa *l, json_t *found)
{
    autofree struct candidate *c = xcalloc(1, sizeof *c);
    struct calibration_run run = {.l = l, .targets = CALIBRATE_GIVE_UP, .seed = 1};
    struct err e = ERR_INIT;
    c->dialect = xstrdup(l->dialect->name);
    int rc = *l->dialect->ground ? calibration_ask(&run, c, &e) : 0;
    struct verdict v = calibration_verdict(c, 1);
    if (!*l->dialect->ground)
        add(r, "coordinates", OK, xasprintf("dialect %s cannot ask for a position", c->dialect), NULL);
    else if (rc || *c->error)
        add(r, "coordinates", WARNING, xstrdup(rc ? e.text : c->error),
            "measure again with holorun calibrate");
    else if (!v.candidate)
        add(r, "coordinates", WARNING,
            xasprintf("none of %d answers in dialect %s hits its button", c->counts[QUESTION_PLACE].asked,
                      c->dialect),
            "holorun calibrate --base-url URL tries all dialects");
    else
        add(r, "coordinates", v.sure && v.space == c->own ? OK : WARNING,
            xasprintf("%d of %d buttons hit as %s, in dialect %s", v.hits, v.asked,
                      dialect_space_name(v.space), c->dialect),
            "holorun calibrate --base-url URL --write tries all dialects and saves the best");
    if (v.sure && v.space == c->own)
        json_object_set_new(found, "dialect", json_string(c->dialect));
    free(c->dialect);
}

static int keep_probe(struct report *r, const struct endpoint *p, json_t *found, struct err *e)
{
    json_t *rows = json_object();
    for (int i = 0; i < r->n; i++)
        json_object_set_new(rows, r->list[i].name, json_string(r->list[i].detail));
    json_object_set_new(found, "probed", rows);
    char *path = profile_kept(p->base, p->model, e);
    int rc = path ? profile_keep(path, p->base, p->model, found, e) : -1;
    if (rc == 0)
        add(r, "kept", OK, path, NULL);
    else
        free(path);
    return rc;
}

/* Checks the key of a provider; call before opening an endpoint, which removes the key from the
 * environment. */
static void check_key(struct report *r, const struct endpoint_options *at)
{
    const char *variable = at->provider->variable, *value = variable ? getenv(variable) : NULL;
    add(r, "provider", OK, xstrdup(at->provider->name), NULL);
    if (at->key)
        add(r, "key", OK, xasprintf("from %s", at->key), NULL);
    else if (!variable)
        add(r, "key", OK, xstrdup("none: a server on this machine"), NULL);
    else if (value && *value)
        add(r, "key", OK, xasprintf("in the environment variable %s", variable), NULL);
}

/* Adds the settings of an open endpoint.  listed: the model is to be taken from the server's list. */
static void add_settings(struct report *r, const struct endpoint *p, bool listed)
{
    add(r, "address", OK, xstrdup(p->base), NULL);
    add(r, "protocol", OK, xstrdup(p->protocol->name), NULL);
    add(r, "dialect", OK,
        xstrdup(listed && !p->provider->dialect ? "by the model's name" : endpoint_dialect(p)), NULL);
    if (listed && p->provider->variable)
        add(r, "model", WARNING, xstrdup("no model selected"), "select one with --model");
    else
        add(r, "model", OK, xstrdup(listed ? "the only model that the server lists" : p->model), NULL);
}

/* Checks the settings of a provider without a connection.  If a model is named, the list of models is not
 * read. */
static void check_provider(struct report *r, const struct settings *s)
{
    struct err e = ERR_INIT;
    struct endpoint_options at = ENDPOINT_AT(*s);
    bool listed = !at.model && !at.provider->model;
    at.model = listed ? "?" : at.model;
    check_key(r, &at);
    struct endpoint *p = endpoint_open(&at, NULL, &e);
    if (p)
        add_settings(r, p, listed);
    else
        fail(r, "settings", e.kind, e.text, NULL);
    endpoint_free(p);
}

static void check_server(struct report *r, const struct settings *s)
{
    struct err e = ERR_INIT;
    struct vqa l = {0};
    struct probe p = {0};
    const struct endpoint_options at = ENDPOINT_AT(*s);
    if (at.provider)
        check_key(r, &at);
    int rc = vqa_open_remote(&l, &at, NULL, 1, &e);
    if (rc == 0 && at.provider)
        add_settings(r, vqa_endpoint(&l), false);
    rc = rc ? rc : probe_server(&p, vqa_endpoint(&l), screen_stop_flag(NULL), &e);
    for (int i = 0; i < p.n; i++)
        add(r, p.rows[i].name, p.rows[i].good ? OK : WARNING, xstrdup(p.rows[i].detail), NULL);
    if (rc == 0)
        check_coordinates(r, &l, p.found);
    rc = rc ? rc : keep_probe(r, vqa_endpoint(&l), p.found, &e);
    if (rc)
        fail(r, "server", e.kind, e.text, NULL);
    probe_free(&p);
    vqa_close(&l);
}

/* Warns about each feature that this build lacks. */
static void check_features(struct report *r)
{
    for (int i = 0; i < FEATURES; i++) {
        struct err e = ERR_INIT;
        if (feature_require(i, &e))
            add(r, feature_get(i)->name, WARNING, xstrdup(e.text), NULL);
    }
}

static void check_machine(struct report *r, const struct settings *set)
{
    bool display = check_display(r, set);
    check_model(r, set->model);
    check_cpu(r);
    check_gpus(r);
    if (display)
        check_names(r, set->display);
    check_private_names(r);
    check_folders(r);
    check_features(r);
}

static void print_text(const struct report *r)
{
    for (int i = 0; i < r->n; i++) {
        const struct finding *f = &r->list[i];
        printf("%-8s %-17s %s\n", status_names[f->status], f->name, f->detail);
        if (f->remedy)
            printf("%-8s %-17s -> %s\n", "", "", f->remedy);
    }
    puts(r->exit ? "holorun cannot run yet: fix the failed checks above" : "holorun can run here");
}

static void print_json(const struct report *r)
{
    json_t *all = json_pack("{s:b, s:i}", "ok", !r->exit, "exit", r->exit), *list = json_array();
    for (int i = 0; i < r->n; i++) {
        const struct finding *f = &r->list[i];
        json_t *one = json_pack("{s:s, s:s}", "name", f->name, "status", status_names[f->status]);
        json_set_text(one, "detail", f->detail);
        json_set_text(one, "remedy", f->remedy);
        json_array_append_new(list, one);
    }
    json_object_set_new(all, "checks", list);
    options_print_json(all, 0);
}

int cmd_doctor(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings set = {0};
    int n = options_parse(&doctor_command, &set, argc, argv, &e);
    if (n < 0)
        return options_refuse(&doctor_command, &e);
    screen_install_signals();
    struct report r = {.exit = ERR_NONE};
    if (!ENDPOINT_GIVEN(set))
        check_machine(&r, &set);
    else if (set.provider && !set.reach)
        check_provider(&r, &set);
    else
        check_server(&r, &set);
    if (set.json)
        print_json(&r);
    else
        print_text(&r);
    for (int i = 0; i < r.n; i++)
        free(r.list[i].detail);
    return r.exit;
}
