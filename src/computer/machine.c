/* machine.c - OSWorld's machine as a screen; see machine.h. */
#include "computer/machine.h"

#include "remote/http.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    PICTURE_MAX = 64 << 20,
    ANSWER_MAX = 1 << 20,
    PROGRAM_MAX = 1 << 20,
    WAIT_S = 150,  /* for the first byte: the server there ends a command after 120 s */
    WHOLE_S = 300, /* a machine that sends a byte now and then is given up */
    RELEASE_S = 5, /* for what no stop ends, as releases after one */
    CONNECT_S = 10,
    WINDOW_TRIES = 3,
    SAID_MAX = 200,
};

struct machine {
    struct computer ops;
    char *url; /* without a slash at its end */
    struct http_client *http;
    int w, h;                /* of pictures, as last compared with the screen's; 0: not yet */
    int untold;              /* times in a row that it did not tell a window */
    struct screen_window at; /* the last answer, for the same question until something is done or seen */
    int at_x, at_y;
    bool at_known;
};

/* Which window is at argv[1], argv[2], or has the keyboard when they are negative: a line of JSON. */
static const char window_script[] =
    "import json,os,sys\n"
    "from Xlib import X,display\n"
    "d=display.Display()\n"
    "r=d.screen().root\n"
    "x,y=int(sys.argv[1]),int(sys.argv[2])\n"
    "def prop(w,n):\n"
    "    p=w.get_full_property(d.intern_atom(n),X.AnyPropertyType)\n"
    "    return p.value if p else None\n"
    "def text(w,n):\n"
    "    v=prop(w,n)\n"
    "    return (v.decode('utf-8','replace') if isinstance(v,bytes) else v or '').split('\\0')[0]\n"
    "chain=[]\n"
    "if x<0:\n"
    "    f=d.get_input_focus().focus\n"
    "    if isinstance(f,int) or f.id==r.id:\n"
    "        q=r.query_pointer()\n"
    "        x,y=q.root_x,q.root_y\n"
    "    else:\n"
    "        while f.id!=r.id:\n"
    "            chain.insert(0,f)\n"
    "            f=f.query_tree().parent\n"
    "if not chain:\n"
    "    w=r\n"
    "    while True:\n"
    "        c=w.translate_coords(r,x,y).child\n"
    "        if not c or isinstance(c,int):\n"
    "            break\n"
    "        w=c\n"
    "        chain.append(w)\n"
    "own=[w for w in chain if prop(w,'WM_STATE')] or [w for w in chain if w.get_wm_class()]\n"
    "out={'id':0}\n"
    "if own:\n"
    "    w=own[0]\n"
    "    g,c,pid=w.get_geometry(),w.get_wm_class(),prop(w,'_NET_WM_PID')\n"
    "    o=r.translate_coords(w,0,0)\n"
    "    kind=prop(w,'_NET_WM_WINDOW_TYPE')\n"
    "    try: program=os.readlink(b'/proc/%d/exe'%pid[0]).decode('utf-8','replace') if pid else ''\n"
    "    except OSError: program=''\n"
    "    title=(text(w,'_NET_WM_NAME') or text(w,'WM_NAME'))[:500]\n"
    "    dialog=bool(kind and d.intern_atom('_NET_WM_WINDOW_TYPE_DIALOG') in kind)\n"
    "    out={'id':w.id,'title':title,'class':c[1] if c else '','program':program,'dialog':dialog,\n"
    "         'rect':[o.x,o.y,g.width,g.height]}\n"
    "print(json.dumps(out))\n";

/* ---- requests ------------------------------------------------------------------------------------- */

/* Puts the address before the reason. */
static int complain(const struct machine *m, const struct err *why, struct err *e)
{
    return err_set(e, why->kind, "%.100s: %.380s", m->url, why->text);
}

static int refuse_status(const struct machine *m, const char *what, const struct http_reply *reply,
                         struct err *e)
{
    char said[SAID_MAX + 1];
    size_t n = reply->body.len < SAID_MAX ? reply->body.len : SAID_MAX;
    for (size_t i = 0; i < n; i++)
        said[i] = (unsigned char)reply->body.data[i] < ' ' ? ' ' : reply->body.data[i];
    said[n] = 0;
    const char *to = reply->location[0] ? " and points to " : "";
    return err_set(e, ERR_ENV, "%.100s answered %s with status %d%s%.200s%s%s; OSWorld's server is meant",
                   m->url, what, reply->status, to, reply->location, n ? ": " : "", said);
}

/* what: "POST /execute".  body NULL: GET.  The caller frees the reply in both cases. */
static int ask(struct machine *m, const volatile int *stop, const char *what, const char *body, size_t max,
               struct http_reply *reply, struct err *e)
{
    struct err why = ERR_INIT;
    char *url = xasprintf("%s%s", m->url, strchr(what, '/'));
    const struct http_request q = {.url = url,
                                   .body = body,
                                   .len = body ? strlen(body) : 0,
                                   .stop = stop,
                                   .connect_s = CONNECT_S,
                                   .first_s = stop ? WAIT_S : RELEASE_S,
                                   .idle_s = stop ? WAIT_S : RELEASE_S,
                                   .whole_s = WHOLE_S,
                                   .once = true, /* nothing is clicked twice */
                                   .max_bytes = max};
    int rc = http_send(m->http, &q, reply, &why);
    free(url);
    if (rc)
        return why.kind == ERR_STOPPED ? err_set(e, ERR_STOPPED, "stopped while the machine answered")
                                       : err_set(e, why.kind, "--computer: %.400s", why.text);
    return reply->status == 200 ? 0 : refuse_status(m, what, reply, e);
}

/* A Python program there, with up to two numbers as arguments; *output is the caller's. */
static int run_python(struct machine *m, const volatile int *stop, const char *program, const int *xy,
                      char **output, struct err *e)
{
    struct err why = ERR_INIT;
    struct http_reply reply;
    json_t *command = json_pack("[s, s, s]", "python3", "-c", program);
    char number[16];
    for (int i = 0; xy && i < 2; i++) {
        snprintf(number, sizeof number, "%d", xy[i]);
        json_array_append_new(command, json_string(number));
    }
    json_t *body = json_pack("{s:o, s:b}", "command", command, "shell", false);
    char *text = json_dumps(body, JSON_COMPACT);
    *output = NULL;
    int rc = ask(m, stop, "POST /execute", text, ANSWER_MAX, &reply, e);
    if (rc == 0 && machine_read_execute(reply.body.data, reply.body.len, output, &why))
        rc = complain(m, &why, e);
    http_reply_free(&reply);
    explicit_bzero(text, strlen(text)); /* it may have a secret */
    free(text);
    json_decref(body);
    return rc;
}

/* ---- the functions of a computer ------------------------------------------------------------------- */

/* Where the two differ, as with enlarged desktops, clicks would go elsewhere. */
static int compare_size(struct machine *m, const volatile int *stop, const struct image *im, struct err *e)
{
    struct err why = ERR_INIT;
    struct http_reply reply;
    int w = 0, h = 0, rc = ask(m, stop, "POST /screen_size", "{}", ANSWER_MAX, &reply, e);
    if (rc == 0 && machine_read_size(reply.body.data, reply.body.len, &w, &h, &why))
        rc = complain(m, &why, e);
    http_reply_free(&reply);
    if (rc == 0 && (w != im->w || h != im->h))
        rc = err_set(e, ERR_ENV,
                     "%.100s: its screenshots are %dx%d and its screen is %dx%d; set its scale to 1", m->url,
                     im->w, im->h, w, h);
    m->w = rc ? 0 : w;
    m->h = rc ? 0 : h;
    return rc;
}

static int capture(void *arg, const volatile int *stop, struct image *out, struct err *e)
{
    struct machine *m = arg;
    struct err why = ERR_INIT;
    struct http_reply reply;
    struct image im = {0};
    m->at_known = false;
    int rc = ask(m, stop, "GET /screenshot", NULL, PICTURE_MAX, &reply, e);
    if (rc == 0 && image_parse_png(&im, reply.body.data, reply.body.len, &why))
        rc = err_set(e, ERR_ENV, "%.100s: its answer to GET /screenshot is no picture: %.300s", m->url,
                     why.text);
    http_reply_free(&reply);
    if (rc == 0 && (im.w != m->w || im.h != m->h))
        rc = compare_size(m, stop, &im, e);
    if (rc) {
        image_free(&im);
        return -1;
    }
    image_free(out);
    *out = im;
    return 0;
}

static int perform(void *arg, const volatile int *stop, const struct computer_event *v, int n, struct err *e)
{
    struct machine *m = arg;
    struct buf program;
    char *output = NULL;
    buf_init(&program, PROGRAM_MAX);
    m->at_known = false;
    int rc = machine_program(v, n, &program, e);
    if (rc == 0)
        rc = run_python(m, stop, program.data, NULL, &output, e);
    if (program.len)
        explicit_bzero(program.data, program.len);
    buf_free(&program);
    free(output);
    return rc;
}

/* One that goes away at that moment is no reason to ask no more; a machine that never answers this is. */
static void count_failure(struct machine *m, const struct err *why)
{
    if (why->kind == ERR_STOPPED)
        return;
    m->untold++;
    if (m->untold == 1)
        warn("rules about windows did not see one of that machine's: %.400s", why->text);
    else if (m->untold == WINDOW_TRIES)
        warn("rules about windows see none of that machine's from now on: %.400s", why->text);
}

/* Asked again only after an action or a picture: a rule asks several times for the same place, and the gate
 * looks again after a person was asked, for whom it took a picture. */
static void window(void *arg, const volatile int *stop, int x, int y, struct screen_window *out)
{
    struct machine *m = arg;
    struct err why = ERR_INIT;
    char *output = NULL;
    const int xy[2] = {x, y};
    *out = (struct screen_window){0};
    if (m->untold >= WINDOW_TRIES)
        return;
    if (!m->at_known || m->at_x != x || m->at_y != y) {
        m->at = (struct screen_window){0};
        int rc = run_python(m, stop, window_script, xy, &output, &why);
        size_t n = 0;
        const char *line =
            rc ? "" : text_last_line(output, strlen(output), &n); /* Xlib may have warned before */
        if (rc == 0 && machine_read_window(line, n, &m->at))
            rc = err_set(&why, ERR_FAILED, "%.100s: no window was named", m->url);
        free(output);
        if (rc)
            count_failure(m, &why);
        else
            m->untold = 0;
        m->at_x = x;
        m->at_y = y;
        m->at_known = rc == 0;
    }
    *out = m->at;
}

/* ---- open, close ------------------------------------------------------------------------------------ */

/* "http://HOST:PORT", perhaps with a slash at its end: nothing that could be a secret or a route. */
static bool is_plain(const char *url)
{
    const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
                       : strncmp(url, "https://", 8) == 0 ? url + 8
                                                          : "";
    size_t n = strcspn(host, "/?#@ \\");
    return n && (!host[n] || (host[n] == '/' && !host[n + 1])) && strlen(url) < 256;
}

struct machine *machine_open(const char *url, struct err *e)
{
    if (!is_plain(url)) {
        err_set(e, ERR_USAGE, "--computer '%.200s': an address such as http://127.0.0.1:5000 is meant", url);
        return NULL;
    }
    struct machine *m = xcalloc(1, sizeof *m);
    m->url = xstrdup(url);
    size_t n = strlen(url);
    if (url[n - 1] == '/')
        m->url[n - 1] = 0;
    m->http = http_open();
    m->ops =
        (struct computer){.name = m->url, .capture = capture, .perform = perform, .window = window, .arg = m};
    return m;
}

void machine_close(struct machine *m)
{
    if (!m)
        return;
    http_close(m->http);
    free(m->url);
    free(m);
}

const struct computer *machine_computer(const struct machine *m)
{
    return &m->ops;
}
