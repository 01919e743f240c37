/* t_places.c - tests points as models write them: each notation gives the same pixel to `ground`, `eval`, the
 * localizer and actions; absent elements; refused input.
 */
#include "check.h"
#include "far.h"
#include "program.h"
#include "tiny_model.h"
#include "xvfb.h"

#include "actions/action.h"
#include "actions/place.h"
#include "base/image.h"
#include "eval/eval.h"
#include "llm/llm.h"

enum { W = 1366, H = 768, PLACES = 400, LONGEST = 600 };

/* {x} {y}: a point; {a} {b} {c} {d}: the corners of a box. */
static const char *const notations[] = {
    "({x},{y})",
    "[{x}, {y}]",
    "{x} {y}",
    "{x}, {y}",
    "{x},{y}",
    "\"{x},{y}\"",
    "<point>{x} {y}</point>",
    "<point>({x}, {y})</point>",
    "<points x1=\"{x}\" y1=\"{y}\" alt=\"the 3 dots\">the 3 dots</points>",
    "<point x=\"{x}\" y=\"{y}\" alt=\"Save\">Save</point>",
    "<|box_start|>({a},{b}),({c},{d})<|box_end|>",
    "<|box_start|>({x},{y})<|box_end|>",
    "<|object_ref_start|>Save 2<|object_ref_end|><|box_start|>({a},{b}),({c},{d})<|box_end|>",
    "<box>({a},{b}),({c},{d})</box>",
    "<ref>Save</ref><box>[[{a}, {b}, {c}, {d}]]</box>",
    "<|ref|>Save<|/ref|><|det|>[[{a}, {b}, {c}, {d}]]<|/det|>",
    "<bbox>{a} {b} {c} {d}</bbox>",
    "({a},{b}),({c},{d})",
    "[{a},{b},{c},{d}]",
    "({a}, {b}, {c}, {d})",
    "[[{a}, {b}, {c}, {d}]]",
    "[[{x}, {y}]]",
    "{\"point\": [{x}, {y}]}",
    "{\"point_2d\": [{x}, {y}], \"label\": \"2 of 3\"}",
    "{\"bbox_2d\": [{a}, {b}, {c}, {d}], \"label\": \"Save (1, 2)\"}",
    "{\"bbox\": [{a}, {b}, {c}, {d}]}",
    "{\"bbox\": [[{a}, {b}], [{c}, {d}]]}",
    "{\"box_2d\": [{b}, {a}, {d}, {c}]}",
    "{\"coordinate\": [{x}, {y}]}",
    "{\"coordinates\": {\"x\": {x}, \"y\": {y}}}",
    "{\"x\": {x}, \"y\": {y}}",
    "{'x': {x}, 'y': {y}}",
    "{\"x\": \"{x}\", \"y\": \"{y}\"}",
    "{\"x\": [{x}, {y}]}",
    "{\"x1\": {a}, \"y1\": {b}, \"x2\": {c}, \"y2\": {d}}",
    "{\"x\": [{a}, {c}], \"y\": [{b}, {d}]}",
    "{\"start_box\": \"({x},{y})\"}",
    "{\"start_box\": \"<|box_start|>({a},{b}),({c},{d})<|box_end|>\"}",
    "{\"coordinate\": \"{x}, {y}\"}",
    "{\"coordinate\": [\"{x}\", \"{y}\"]}",
    "[{\"bbox_2d\": [{a}, {b}, {c}, {d}], \"label\": \"a\"}]",
    "[{\"point_2d\": [{x}, {y}]}, {\"point_2d\": [{x}, {y}]}]",
    "{\"name\": \"computer_use\", \"arguments\": {\"action\": \"left_click\", \"coordinate\": [{x}, {y}]}}",
    "<tool_call>\n{\"name\": \"click\", \"arguments\": \"{\\\"x\\\": {x}, \\\"y\\\": {y}}\"}\n</tool_call>",
    "<function=click>\n<parameter=x>\n{x}\n</parameter>\n<parameter=y>\n{y}\n</parameter>\n</function>",
    "<function=click><parameter=coordinate>[{x}, {y}]</parameter></function>",
    "```json\n{\"x\": {x}, \"y\": {y}}\n```",
    "```json\n[\n\t{\"bbox_2d\": [{a}, {b}, {c}, {d}], \"label\": \"Save\"}\n]\n```",
    "The 2nd button is at ({x}, {y}), below the title.",
    "I would click at {x}, {y}.",
    "Answer: {x} {y}",
    "{\"center_x\": {x}, \"center_y\": {y}}",
    "{\"bounding_box\": {\"left\": {a}, \"top\": {b}, \"right\": {c}, \"bottom\": {d}}}",
    "{\"found\": true, \"result\": {\"point\": [{x}, {y}]}}",
    "The button is at x={x}, y={y}",
    "x: {x}, y: {y}",
    "<think>Is it (1, 2)? No.</think>\n({x}, {y})",
    "Click({x}, {y})",
    "click(x={x}, y={y})",
    "pyautogui.click(x={x}, y={y}, clicks=2, button='left')",
    "pyautogui.moveTo({x}, {y})",
    "Thought: near (3, 4)\nAction: click(start_box='({x},{y})')",
    "Action: left_double(start_box='<|box_start|>({a},{b}),({c},{d})<|box_end|>')",
    "click(point='<point>{x} {y}</point>')",
    "start_box='({x},{y})'",
    "left_click(coordinate=[{x}, {y}])",
    "\xef\xbc\x88{x}\xef\xbc\x8c{y}\xef\xbc\x89", /* full-width punctuation */
};
enum { NOTATIONS = sizeof notations / sizeof *notations };

static const enum coord_space spaces[] = {COORD_NORM1000, COORD_NORM1, COORD_PIXEL, COORD_PX28, COORD_FIT};

static struct dialect *in_space(enum coord_space space)
{
    struct err e = ERR_INIT;
    char *text = dialect_in_space("qwen", space, &e);
    struct dialect *d = text ? dialect_parse(text, strlen(text), "test", &e) : NULL;
    if (!d)
        fail_msg("%s", e.text);
    free(text);
    return d;
}

struct drawn {          /* a point, its box, and the pixel of both */
    char number[6][24]; /* x y a b c d */
    double at[2];       /* as read */
};

/* Draws a box around a random centre that has as many digits as the space needs. */
static void draw(struct drawn *p, const struct dialect *d, uint64_t *seed)
{
    int extent[2] = {W, H};
    dialect_shown_size(d, &extent[0], &extent[1]);
    for (int i = 0; i < 2; i++) {
        bool parts = d->coords == COORD_NORM1;
        int most = d->coords == COORD_NORM1000 || parts ? 1000 : extent[i];
        int half = check_below(seed, most / 10), centre = half + 1 + check_below(seed, most - 2 * half - 2);
        const int numbers[] = {centre, centre - half, centre + half};
        for (int k = 0; k < 3; k++)
            snprintf(p->number[2 * k + i], sizeof p->number[0], parts ? "%.3f" : "%.0f",
                     parts ? numbers[k] / 1000.0 : numbers[k]);
        p->at[i] = parts ? centre / 1000.0 : centre;
    }
}

static void spell(const char *notation, const struct drawn *p, char out[LONGEST])
{
    static const char names[] = "xyabcd";
    size_t n = 0;
    for (const char *s = notation; *s; s++) {
        const char *name = *s == '{' && s[1] && s[2] == '}' ? strchr(names, s[1]) : NULL;
        const char *put = name ? p->number[name - names] : NULL;
        if (put) {
            n += (size_t)snprintf(out + n, LONGEST - n, "%s", put);
            s += 2;
        } else {
            out[n++] = *s;
        }
    }
    out[n] = 0;
}

/* Returns the position in the image, computed independently for normalized spaces. */
static double expected(const struct dialect *d, const struct drawn *p, int axis)
{
    int w = W, h = H, size = axis ? H : W;
    dialect_shown_size(d, &w, &h);
    double top = d->coords == COORD_NORM1000 ? 1000 : d->coords == COORD_NORM1 ? 1 : axis ? h : w;
    return fmin(p->at[axis] * size / top,
                d->coords == COORD_NORM1000 || d->coords == COORD_NORM1 ? size : size - 1);
}

static void action_of(const struct dialect *d, const char *text, struct action *out)
{
    struct err e = ERR_INIT;
    struct step s;
    bool json = *text == '{' || *text == '[';
    json_t *value = json ? json_loads(text, 0, NULL) : NULL;
    value = value ? value : json_string(text);
    json_t *call = json_pack("{s:s, s:{s:s, s:o}}", "name", "computer_use", "arguments", "action",
                             "left_click", "coordinate", value);
    char *dumped = json_dumps(call, 0), *reply = xasprintf("<tool_call>\n%s\n</tool_call>", dumped);
    if (action_parse(reply, strlen(reply), d, W, H, &s, &e))
        fail_msg("%s: %s", text, e.text);
    *out = s.actions[0];
    out->text = NULL;
    step_free(&s);
    json_decref(call);
    free(dumped);
    free(reply);
}

static void check_one(const struct dialect *d, const struct drawn *p, const char *text)
{
    struct err e = ERR_INIT;
    struct place at;
    int32_t x, y;
    double whole[] = {0, 0, W, H};
    const struct target anywhere = {TARGET_BOX, whole, 2, 0, 0};
    struct eval_answer answer = {0};
    struct action action;
    if (dialect_read_place(d, text, strlen(text), &at, &e) || dialect_place_pixel(d, &at, W, H, &x, &y, &e))
        fail_msg("%s: %s", text, e.text);
    double ex = expected(d, p, 0), ey = expected(d, p, 1);
    if (at.absent || fabs(x - floor(ex)) > (fabs(ex - rint(ex)) < 1e-6) ||
        fabs(y - floor(ey)) > (fabs(ey - rint(ey)) < 1e-6))
        fail_msg("%s in %s: %d, %d, and %g, %g was expected", text, dialect_space_name(d->coords), x, y, ex,
                 ey);
    eval_score(&anywhere, d, text, W, H, &answer);
    assert_true(answer.placed && answer.correct && !answer.wrong_format);
    assert_true((int)answer.x == x && (int)answer.y == y);
    if (strstr(text, "</tool_call>") || strstr(text, "</think>"))
        return; /* as an argument these end the call */
    action_of(d, text, &action);
    if (action.x != x || action.y != y)
        fail_msg("%s: the action is at %d, %d, the grounding at %d, %d", text, action.x, action.y, x, y);
}

static void t_agree(void **state)
{
    uint64_t seed = check_seed();
    struct dialect *d[sizeof spaces / sizeof *spaces];
    char text[LONGEST];
    int n = 0;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        d[i] = in_space(spaces[i]);
    for (; n < PLACES || n < 5 * NOTATIONS; n++) {
        struct drawn p;
        const struct dialect *in = d[n / NOTATIONS % 5];
        draw(&p, in, &seed);
        spell(notations[n % NOTATIONS], &p, text);
        check_one(in, &p, text);
    }
    check_note("%d places in %d notations and 5 coordinate spaces", n, NOTATIONS);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        dialect_free(d[i]);
}

/* ---- absent elements ----------------------------------------------------------------------------- */

static void t_absent(void **state)
{
    static const char *const texts[] = {"[-1, -1]",
                                        "(-1,-1)",
                                        "-1 -1",
                                        "{\"x\": -1, \"y\": -1}",
                                        "{\"point\": [-1, -1]}",
                                        "[[-1, -1, -1, -1]]",
                                        "Click(-1, -1)",
                                        "<point>-1 -1</point>",
                                        "[-5, -2]",
                                        "{\"bbox_2d\": []}",
                                        "{\"bbox_2d\": null}",
                                        "{\"point_2d\": \"none\"}",
                                        "{\"x\": null, \"y\": null}",
                                        "[0, 0, 0, 0]",
                                        "null",
                                        "None.",
                                        "none",
                                        "[]",
                                        "[[]]",
                                        "{}",
                                        "not found",
                                        "Not found.",
                                        "```json\n[]\n```",
                                        "```json\nnull\n```",
                                        "{\"found\": false}",
                                        "{\"visible\": false, \"x\": 0, \"y\": 0}",
                                        "[null, null]",
                                        "I do not see it.",
                                        "{\"status\": \"not found\"}",
                                        "[{\"bbox_2d\": []}]",
                                        "<box>none</box>",
                                        "There is no such button on the screen.",
                                        "The element is not visible in the screenshot.",
                                        "I could not find it: [-1, -1]",
                                        "<think>where (3, 4)?</think>none"};
    struct dialect *d = in_space(COORD_NORM1000);
    double corners[] = {0, 0, 10, 10};
    const struct target box = {TARGET_BOX, corners, 2, 0, 0}, nothing = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct err e = ERR_INIT;
        struct place at;
        struct eval_answer a = {0}, b = {0};
        if (dialect_read_place(d, texts[i], strlen(texts[i]), &at, &e) || !at.absent)
            fail_msg("'%s': %g, %g %s", texts[i], at.n.x, at.n.y, e.text);
        eval_score(&nothing, d, texts[i], W, H, &a);
        eval_score(&box, d, texts[i], W, H, &b);
        assert_true(a.correct && !a.placed && !a.wrong_format);
        assert_true(!b.correct && !b.placed && !b.wrong_format);
    }
    dialect_free(d);
}

static void t_absent_actions(void **state)
{
    static const char *const calls[][2] = {
        {"qwen",
         "<tool_call>{\"name\": \"computer_use\", \"arguments\": {\"action\": \"left_click\", \"coordinate\": "
         "[-1, -1]}}</tool_call>"},
        {"holo3",
         "{\"note\": null, \"thought\": \"t\", \"tool_call\": {\"tool_name\": \"click_desktop\", \"element\": "
         "\"e\", \"x\": -1, \"y\": -1}}"},
        {"uitars", "Action: click(start_box='(-1,-1)')"},
        {"pyautogui", "pyautogui.click(-1, -1)"},
        {"anthropic-computer", "{\"action\": \"left_click\", \"coordinate\": [-3, -2]}"}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct err e = ERR_INIT;
        struct step s;
        struct dialect *d = dialect_load(calls[i][0], &e);
        assert_int_equal(action_parse(calls[i][1], strlen(calls[i][1]), d, W, H, &s, &e), FAULT_RANGE);
        assert_string_equal(e.text, "x, y: the model says that the element is not on the screen");
        step_free(&s);
        dialect_free(d);
    }
}

/* ---- refused input ------------------------------------------------------------------------------- */

static void t_refused(void **state)
{
    static const char *const texts[][2] = {
        {"500", "1 number"},
        {"1 2 3", "3 numbers"},
        {"(1, 2, 3)", "3 numbers"},
        {"[1, 2, 3]", "3 numbers"},
        {"Click(1, 2, 3)", "3 numbers"},
        {"1 2 3 4 5", "5 numbers"},
        {"{\"x\": 5}", "'x' and 'y'"},
        {"{\"y\": 5}", "'x' and 'y'"},
        {"{\"x\": \"left\", \"y\": 5}", "'x' and 'y'"},
        {"{\"bbox_2d\": [300, 200, 100, 400]}", "ends before it begins"},
        {"<box>(300,200),(100,400)</box>", "ends before it begins"},
        {"<|box_start|>(1,2),(3)<|box_end|>", "3 numbers"},
        {"<point>5</point>", "1 number"},
        {"[NaN, 5]", "is not a position"},
        {"{\"x\": NaN, \"y\": 5}", "is not a position"},
        {"{\"x\": Infinity, \"y\": 5}", "is not a position"},
        {"(1e400, 5)", "is not a position"},
        {"{\"x\": 1e300, \"y\": 5}", "outside the screen"},
        {"99999999999999 5", "outside the screen"},
        {"{\"point\": [500]}", "1 number"},
        {"{\"point\": \"left\"}", "is not a position"},
        {"{\"x\": 500, \"y\": 2", "cut off"},
        {"Click(500, 20", "cut off"},
        {"(500, 20", "cut off"},
        {"(650,327)!420", "digits follow"},
        {"<point>500 20", "cut off"},
        {"{\"bbox_2d\": [400, 200</tool_call>", "cut off before a closing tag"},
        {"<tool_call>{\"x\": 500, \"y\": 20</tool_call>", "cut off before a closing tag"},
        {"<think>it is at (5, 6)", "inside its reasoning"},
        {"it is at the top", "two numbers"},
        {"", "two numbers"},
        {"50%, 30%", "two numbers"},
        {"(50%, 30%)", "two numbers"},
        {"version 1.2.3, 4", "two numbers"},
        {"1,234 items", "two numbers"},
        {"[{\"point_2d\": [1, 2]}, {\"point_2d\": [3, 4]}]", "two positions, 1, 2 and 3, 4"},
        {"(1, 2) or (3, 4)", "has two positions"},
        {"<points x1=\"1\" y1=\"2\" x2=\"3\" y2=\"4\">two</points>", "several points"},
        {"[[1, 2], [3, 4]]", "has two positions"},
        {"{\"point\": [1200, 5]}", "outside the screen"},
        {"{\"bbox_2d\": [500, 500, 1400, 600]}", "outside the screen"},
        {"drag(100, 200, 300, 400)", "a drag has two positions"},
        {"none of these", "two numbers"},
        {"Not found, perhaps (5, 6)", "reports that the element is absent"},
        {"<loc0123><loc0456>", "two numbers"},
    };
    struct dialect *d = in_space(COORD_NORM1000);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct err e = ERR_INIT;
        struct place at;
        int32_t x = 0, y = 0;
        struct eval_answer a = {0};
        const struct target nothing = {0};
        int rc = dialect_read_place(d, texts[i][0], strlen(texts[i][0]), &at, &e);
        rc = rc || at.absent ? rc : dialect_place_pixel(d, &at, W, H, &x, &y, &e);
        if (!rc || !strstr(e.text, texts[i][1]) || strchr(e.text, '\n'))
            fail_msg("'%s': %d %d, %d: %s", texts[i][0], rc, x, y, e.text);
        eval_score(&nothing, d, texts[i][0], W, H, &a);
        assert_true(a.wrong_format && !a.correct);
    }
    dialect_free(d);
}

static void t_fractions(void **state)
{
    static const struct {
        enum coord_space space;
        const char *text;
        int x, y; /* -1: refused */
    } cases[] = {
        {COORD_NORM1000, "(0.5, 0.25)", W / 2, H / 4},
        {COORD_NORM1000, "(0.5, 1)", W / 2, H - 1},
        {COORD_NORM1000, "[0.25, 0.5, 0.75, 1.0]", W / 2, H * 3 / 4},
        {COORD_NORM1000, "(1.0, 1.0)", W - 1, H - 1},
        {COORD_NORM1, "[0.25, 0.5, 0.75, 1.0]", W / 2, H * 3 / 4},
        {COORD_NORM1, "(500, 250)", -1, 0},
        {COORD_PIXEL, "(0.5, 0.25)", -1, 0},
        {COORD_PIXEL, "[0.1, 0.2, 0.3, 0.4]", -1, 0},
        {COORD_PX28, "{\"x\": 0.5, \"y\": 0.25}", -1, 0},
        {COORD_PIXEL, "(100.5, 7.2)", 101, 7},
        {COORD_PIXEL, "(0, 1)", 0, 1},
        /* Molmo's percentages */
        {COORD_NORM1000, "<point x=\"50.0\" y=\"25.0\" alt=\"Save\">Save</point>", W / 2, H / 4},
        {COORD_PIXEL, "<point x=\"50.0\" y=\"25.0\" alt=\"Save\">Save</point>", W / 2, H / 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        struct dialect *d = in_space(cases[i].space);
        struct place at;
        int32_t x = -1, y = -1;
        int rc = dialect_read_place(d, cases[i].text, strlen(cases[i].text), &at, &e);
        rc = rc ? rc : dialect_place_pixel(d, &at, W, H, &x, &y, &e);
        if ((rc != 0) != (cases[i].x < 0) || (!rc && (x != cases[i].x || y != cases[i].y)))
            fail_msg("%s: %d, %d: %s", cases[i].text, x, y, e.text);
        dialect_free(d);
    }
}

/* ---- local model ------------------------------------------------------------------------------------------
 */

static void check_local(struct engine *g, const char *name)
{
    static const int sizes[][2] = {{640, 480}, {90, 50}, {640, 480}, {1366, 768}};
    struct err e = ERR_INIT;
    struct dialect *d = dialect_load(name, &e);
    struct llm *m = llm_local(g, d, check_seed());
    volatile int cancel = 0;
    for (int i = 0; i < 24; i++) {
        int w = sizes[i % 4][0], h = sizes[i % 4][1], shown_w = w, shown_h = h;
        struct image im = tiny_image(w, h, 7);
        const struct chat_part parts[] = {{.text = "Save"}, {.image = &im}};
        const struct llm_request r = {
            .goal = GOAL_GROUND, .sampling = {1, 1, 60}, .resample = i, .cancel = &cancel};
        struct generated said = {0};
        struct place at;
        if (llm_ask(m, "", parts, 2, CHAT_PLACE_TEMPLATE, &r, &said, &e) ||
            dialect_read_place(d, said.text.data, said.text.len, &at, &e))
            fail_msg("%s: %s", name, e.text);
        dialect_shown_size(d, &shown_w, &shown_h);
        if (at.n.x >= shown_w || at.n.y >= shown_h)
            fail_msg("%s: %s in %d x %d", name, said.text.data, shown_w, shown_h);
        generated_free(&said);
        image_free(&im);
    }
    llm_free(m);
    dialect_free(d);
}

static void t_local(void **state)
{
    struct tiny t;
    tiny_init(&t, check_seed());
    tiny_write(&t);
    struct engine *g = tiny_open(&t, NULL, 1, true);
    check_local(g, "fara");
    check_local(g, "uitars15");
    engine_close(g);
    tiny_free(&t);
}

/* ---- the program --------------------------------------------------------------------------------- */

static char *answers(void *arg, int n, const char *request)
{
    if (strstr(request, "GET /v1/models"))
        return xstrdup(FAR_JSON "{\"data\": [{\"id\": \"tiny\"}]}");
    if (strstr(request, "GET "))
        return xstrdup(FAR_ERROR("404 Not Found", "no"));
    return far_stream(*(const char **)arg);
}

static void t_program(void **state)
{
    static const struct {
        const char *reply, *out, *hits;
        int code;
    } cases[] = {
        {"```json\n[{\"bbox_2d\": [400, 400, 600, 600], \"label\": \"Save\"}]\n```", "320 240\n",
         "\"hits\":1", 0},
        {"<|box_start|>(450,450),(550,550)<|box_end|>", "320 240\n", "\"hits\":1", 0},
        {"[-1, -1]", "not found\n", "\"hits\":1", 1},
        {"(100, 200, 300)", "", "\"hits\":0", 1},
    };
    struct far_server s;
    struct xvfb x;
    OUTCOME(o);
    struct image im = {0};
    struct err e = ERR_INIT;
    const char *reply = "";
    xvfb_folder(&x);
    far_open_with(&s, answers, (void *)&reply);
    char *url = far_address(&s), *picture = xvfb_place(&x, "a.png");
    if (image_alloc(&im, 640, 480, &e) || image_write_png(&im, picture, &e))
        fail_msg("%s", e.text);
    image_free(&im);
    char *set = xvfb_put(&x, "set.jsonl",
                         "{\"image\": \"a.png\", \"instruction\": \"Save\", \"box\": [319, 239, 321, 241]}\n"
                         "{\"image\": \"a.png\", \"instruction\": \"Quit\", \"box\": null}\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *results = xasprintf("%s/%zu.jsonl", x.dir, i);
        reply = cases[i].reply;
        program_run(&x, &o, WORDS("ground", picture, "Save", "--base-url", url));
        if (o.code != cases[i].code || strcmp(o.out, cases[i].out) != 0)
            fail_msg("%s: %d %s%s", reply, o.code, o.out, o.err);
        program_run(&x, &o, WORDS("eval", set, "--base-url", url, "--json", "-q", "--results", results));
        free(results);
        if (o.code || !strstr(o.out, cases[i].hits))
            fail_msg("%s: %d %s%s", reply, o.code, o.out, o.err);
    }
    far_close(&s);
    free(set);
    free(picture);
    free(url);
}

static const struct CMUnitTest tests[] = {
    CLAIM("ground, eval, the localizer and actions read a place alike, in every notation and space", t_agree),
    CLAIM("negative places, null, empty lists and words mean that the element is absent", t_absent),
    CLAIM("an action at an absent place is refused", t_absent_actions),
    CLAIM("half-plausible places are refused with one line that says why", t_refused),
    CLAIM("parts of the screen are read where coordinates are normalised, and refused as pixels",
          t_fractions),
    CLAIM("a local model that answers in pixels stays inside of the newest image", t_local),
    CLAIM("the program prints the centre of a box, and 'not found' for an absent element", t_program),
};

CHECK_MAIN()
