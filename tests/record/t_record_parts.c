/* t_record_parts.c - tests parts of recording without a display: events become gestures, images are found
 * again, files are written and read.
 */
#include "check.h"

#include "record/gestures.h"
#include "record/picture.h"
#include "record/recording.h"

#include <X11/Xlib.h>
#include <X11/keysym.h>

/* ---- gestures --------------------------------------------------------------------------------------- */

struct notes { /* recognized gestures as text */
    struct buf said;
    int pointed;
};

static void on_pointed(void *arg, const struct input *at)
{
    ((struct notes *)arg)->pointed++;
}

static void on_typing(void *arg, const struct input *at)
{
}

static void on_done(void *arg, struct gesture *g)
{
    struct notes *n = arg;
    buf_puts(&n->said, n->said.len ? "; " : "");
    action_describe(&g->action, &n->said);
    action_free(&g->action);
}

/* Feeds a script: "d1 100,50" presses button 1 there, "u1" releases it, "m 10,20" moves, "+300" advances the
 * time by ms and "~300" does so without a notification, "k a" taps a key, "D Control_L" and "U Control_L"
 * press and release one. */
static void expect_gestures(const char *script, bool escapes, const char *want)
{
    struct notes n = {.pointed = 0};
    const struct gesture_sink sink = {&n, on_pointed, on_typing, on_done};
    struct gestures *g = gestures_new(&sink);
    struct input in = {.ms = 1000};
    char copy[2000], *save = NULL, name[64];
    buf_init(&n.said, 1 << 16);
    snprintf(copy, sizeof copy, "%s", script);
    for (char *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save)) {
        int x, y;
        in.ms += 30;
        if (*w == '~') {
            in.ms += atoi(w + 1);
            continue;
        }
        if (*w == '+') {
            in.ms += atoi(w + 1);
            gestures_tick(g, atoi(w + 1));
            continue;
        }
        if (sscanf(w + 1, "%*d %d,%d", &x, &y) == 2 || sscanf(w, "m %d,%d", &x, &y) == 2) {
            in.x = x;
            in.y = y;
        }
        in.kind = *w == 'm' ? INPUT_MOTION : *w == 'd' || *w == 'u' ? INPUT_BUTTON : INPUT_KEY;
        in.down = *w == 'd' || *w == 'k' || *w == 'D';
        in.button = in.kind == INPUT_BUTTON ? w[1] - '0' : 0;
        in.text[0] = 0;
        if (in.kind == INPUT_KEY) {
            sscanf(w + 2, "%63s", name);
            in.keysym = in.plain = (uint32_t)XStringToKeysym(name);
            if (in.keysym >= ' ' && in.keysym < 127)
                snprintf(in.text, sizeof in.text, "%c", (char)in.keysym);
            else if (in.keysym == XK_eacute)
                snprintf(in.text, sizeof in.text, "\xc3\xa9");
        }
        gestures_input(g, &in);
        if (*w == 'k') {
            in.down = false;
            gestures_input(g, &in);
        }
    }
    gestures_end(g, escapes);
    if (strcmp(n.said.data ? n.said.data : "", want) != 0)
        fail_msg("%s\n gave  %s\n where %s was expected", script, n.said.data, want);
    buf_free(&n.said);
    gestures_free(g);
}

static void t_gestures(void **state)
{
    static const struct {
        const char *script, *want;
    } cases[] = {
        {"d1 100,50|u1 101,50", "click at 100,50"},
        {"d3 9,9|u3 9,9", "right-click at 9,9"},
        {"d1 5,5|u1 5,5|d1 6,5|u1 6,5", "double-click at 5,5"},
        {"d1 5,5|u1 5,5|d1 6,5|u1 6,5|d1 6,6|u1 6,6", "triple-click at 5,5"},
        {"d1 5,5|u1 5,5|+500|d1 5,5|u1 5,5", "click at 5,5; click at 5,5"},
        {"d1 5,5|u1 5,5|~500|d1 5,5|u1 5,5", "click at 5,5; click at 5,5"},
        {"d1 5,5|u1 5,5|d1 50,5|u1 50,5", "click at 5,5; click at 50,5"},
        {"d1 5,5|m 20,9|m 60,70|u1 80,90", "drag at 5,5 to 80,90"},
        {"d1 5,5|m 60,70", ""},
        {"d5 7,7|u5 7,7|d5 7,8|u5 7,8|d5 9,9|u5 9,9", "scroll down 3 at 7,7"},
        {"d5 7,7|u5 7,7|d4 7,7|u4 7,7|d7 7,7|u7 7,7",
         "scroll down 1 at 7,7; scroll up 1 at 7,7; scroll right 1 at 7,7"},
        {"k H|k e|k y|k Return|k a", "type \"Hey\" and press Enter; type \"a\""},
        {"k a|k eacute|k BackSpace|k b", "type \"ab\""},
        {"k a|k BackSpace|k BackSpace", "press BackSpace"},
        {"k a|k Tab|k b", "type \"a\"; press Tab; type \"b\""},
        {"D Control_L|k s|U Control_L", "press Control_L+s"},
        {"D Control_R|D Shift_R|k t|U Shift_R|U Control_R", "press Control_L+Shift_L+t"},
        {"D Shift_L|k A|U Shift_L|k b", "type \"Ab\""},
        {"k Down|k Down|k Down|k Up", "press Down 3 times; press Up"},
        {"D Super_L|U Super_L", "press Super_L"},
        {"D Control_L|U Control_L", ""},
        {"D Control_L|d1 4,4|u1 4,4|U Control_L", "Control_L+click at 4,4"},
        {"k dead_acute|k eacute", "type \"\xc3\xa9\""},
        {"k Caps_Lock|k A", "type \"A\""},
        {"k a|+3000|k b", "type \"a\"; type \"b\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_gestures(cases[i].script, false, cases[i].want);
    expect_gestures("k a|k Escape|k Escape", true, "type \"a\"");
    expect_gestures("k Escape|k Escape|k Escape", true, "press Escape");
    expect_gestures("k Escape|k Escape", false, "press Escape 2 times");
}

static void t_long_gestures(void **state)
{
    struct notes n = {.pointed = 0};
    const struct gesture_sink sink = {&n, on_pointed, on_typing, on_done};
    struct gestures *g = gestures_new(&sink);
    struct input in = {.kind = INPUT_BUTTON, .down = true, .button = 1};
    buf_init(&n.said, 1 << 20);
    gestures_input(g, &in);
    in.kind = INPUT_MOTION;
    for (int i = 0; i < 100000; i++, in.x = i % 900)
        gestures_input(g, &in);
    in = (struct input){.kind = INPUT_BUTTON, .button = 1, .x = 700, .y = 3};
    gestures_input(g, &in);
    for (int i = 0; i < 5000; i++) {
        in = (struct input){
            .kind = INPUT_KEY, .down = true, .ms = i, .keysym = XK_a, .plain = XK_a, .text = "a"};
        gestures_input(g, &in);
    }
    for (int i = 0; i < 300; i++) {
        in = (struct input){.kind = INPUT_BUTTON, .down = true, .button = 5, .ms = i};
        gestures_input(g, &in);
    }
    gestures_end(g, false);
    assert_non_null(strstr(n.said.data, "drag at 0,0 to 700,3"));
    assert_non_null(strstr(n.said.data, "scroll down 100 at 0,0; scroll down 100 at 0,0; scroll down 100"));
    buf_free(&n.said);
    gestures_free(g);
}

/* ---- images ----------------------------------------------------------------------------------------- */

static void fill(struct image *im, int x, int y, int w, int h, unsigned rgb)
{
    for (int j = y; j < y + h; j++)
        for (int i = x; i < x + w; i++)
            if (i >= 0 && j >= 0 && i < im->w && j < im->h)
                for (int c = 0; c < 3; c++)
                    im->rgb[3 * (j * im->w + i) + c] = (uint8_t)(rgb >> (16 - 8 * c));
}

/* Paints windows with rows of blocks that resemble words. */
static void paint_desktop(struct image *im, uint64_t *seed)
{
    fill(im, 0, 0, im->w, im->h, 0x30506f);
    for (int k = 0; k < 12; k++) {
        int w = 120 + check_below(seed, 400), h = 80 + check_below(seed, 300);
        int x = check_below(seed, im->w - w), y = check_below(seed, im->h - h);
        unsigned ink = (unsigned)check_below(seed, 0x60) * 0x10101u;
        fill(im, x, y, w, h, 0xe0e0e0u + (unsigned)check_below(seed, 0x1f));
        for (int j = y + 8; j + 10 < y + h; j += 16)
            for (int i = x + 8; i + 20 < x + w; i += 3 + check_below(seed, 16))
                fill(im, i, j, 1 + check_below(seed, 9), 2 + check_below(seed, 8), ink);
    }
}

static void paint_icon(struct image *im, int x, int y, uint64_t seed, unsigned tint)
{
    fill(im, x, y, 32, 32, 0xd8d8d8 + tint);
    for (int k = 0; k < 14; k++)
        fill(im, x + 3 + check_below(&seed, 22), y + 3 + check_below(&seed, 22), 2 + check_below(&seed, 7),
             2 + check_below(&seed, 7), (unsigned)check_below(&seed, 0xffffff));
}

static void t_pictures(void **state)
{
    uint64_t seed = check_seed();
    enum { ROUNDS = 60 };
    int found = 0, tinted = 0, ghosts = 0;
    double ms = 0;
    for (int k = 0; k < ROUNDS; k++) {
        struct image before = {0}, after = {0}, icon = {0};
        struct picture_match m[PICTURE_MATCHES], at;
        uint64_t look = seed + 977u * (unsigned)k + 1;
        assert_int_equal(image_alloc(&before, 1280, 800, NULL), 0);
        assert_int_equal(image_alloc(&after, 1280, 800, NULL), 0);
        paint_desktop(&before, &seed);
        paint_desktop(&after, &seed);
        int x = 8 + check_below(&seed, 1200), y = 8 + check_below(&seed, 740);
        int nx = 8 + check_below(&seed, 1200), ny = 8 + check_below(&seed, 740);
        paint_icon(&before, x, y, look, 0);
        assert_int_equal(image_crop(&icon, &before, x, y, 32, 32, NULL), 0);
        ghosts += picture_find(&after, &icon, 16, 16, m); /* the icon is not there */
        paint_icon(&after, nx, ny, look, 0);
        clock_t start = clock();
        int n = picture_find(&after, &icon, 16, 16, m);
        ms += 1000.0 * (double)(clock() - start) / CLOCKS_PER_SEC;
        found += n == 1 && m[0].x == nx && m[0].y == ny && m[0].score > 0.999;
        paint_icon(&after, nx, ny, look, 0x101010); /* as under a pointer */
        tinted +=
            picture_score_near(&after, &icon, nx + 2, ny - 1, 3, 16, 16, &at) > PICTURE_FOUND && at.x == nx;
        image_free(&before);
        image_free(&after);
        image_free(&icon);
    }
    check_note(
        "%d of %d found exactly, %d when lighter, %d where there is none; %.1f ms a search of 1280x800",
        found, ROUNDS, tinted, ghosts, ms / ROUNDS);
    assert_int_equal(found, ROUNDS);
    assert_int_equal(tinted, ROUNDS);
    assert_int_equal(ghosts, 0);
}

static void paint_line(struct image *im, int x, int y, int w, int h)
{
    for (int j = y; j < y + h; j++)
        for (int i = x; i < x + w; i++)
            memset(im->rgb + 3 * (j * im->w + i), 0, 3);
}

/* A field with its caret, without it, with it elsewhere, and with another letter. */
static void t_caret(void **state)
{
    static const struct {
        const char *what;
        int x, y, w, h; /* black only on the screen */
        bool same;
    } cases[] = {
        {"no cursor", 0, 0, 0, 0, true},        {"the same", 20, 10, 1, 17, true},
        {"elsewhere", 31, 10, 2, 17, true},     {"tall", 31, 2, 2, 40, true},
        {"a block", 28, 10, 9, 17, false},      {"two of them", 31, 10, 2, 17, true},
        {"a low letter", 31, 14, 12, 9, false}, {"an underline", 10, 30, 30, 2, false},
    };
    for (int k = 0; k < 8; k++)
        for (int recorded = 0; recorded < 2; recorded++) {
            struct image field = {0}, im = {0};
            struct picture_match at;
            assert_int_equal(image_alloc(&field, 48, 48, NULL), 0);
            assert_int_equal(image_alloc(&im, 300, 200, NULL), 0);
            memset(field.rgb, 250, (size_t)3 * 48 * 48);
            memset(im.rgb, 250, (size_t)3 * 300 * 200);
            if (recorded)
                paint_line(&field, 20, 10, 1, 17);
            paint_line(&im, 100 + cases[k].x, 50 + cases[k].y, cases[k].w, cases[k].h);
            if (k == 5)
                paint_line(&im, 108, 60, 1, 17);
            paint_line(&im, 108, 85, 4, 1); /* the field is not plain */
            paint_line(&field, 8, 35, 4, 1);
            bool same = picture_score_near(&im, &field, 100, 50, 3, 24, 24, &at) >= PICTURE_FOUND;
            if (same != cases[k].same && !(k == 5 && recorded)) /* three are too many */
                fail_msg("%s, %s: %s", cases[k].what, recorded ? "one recorded" : "none recorded",
                         same ? "the same" : "not the same");
            image_free(&field);
            image_free(&im);
        }
}

/* A button without its label, with another label, or greyed out does not match. */
static void t_not_alike(void **state)
{
    struct image im = {0}, button = {0};
    struct picture_match m[PICTURE_MATCHES];
    assert_int_equal(image_alloc(&im, 640, 480, NULL), 0);
    for (int k = 0; k < 4; k++) {
        fill(&im, 0, 0, 640, 480, 0xdddddd);
        for (int i = 0; i < 60; i++) /* equal surroundings */
            fill(&im, 62 + i * 37 % 170, i % 2 ? 64 + i % 28 : 136 + i % 30, 7, 5, 0x202020);
        fill(&im, 100, 100, 96, 30, 0x888888);
        fill(&im, 101, 101, 94, 28, 0xeeeeee);
        for (int i = 0; i < 6 && k != 1; i++) /* letters */
            fill(&im, 125 + 8 * i, 109 + (k == 2 ? i * 5 % 7 : i % 2 * 3), k == 2 ? 3 + i % 3 : 5,
                 k == 2 ? 5 : 10, k == 3 ? 0x848484 : 0x111111);
        if (k == 0)
            assert_int_equal(image_crop(&button, &im, 60, 60, 180, 110, NULL), 0);
        int n = picture_find(&im, &button, 88, 55, m);
        check_note("%s: %d, score %.2f",
                   k == 0   ? "the same"
                   : k == 1 ? "no word"
                   : k == 2 ? "another word"
                            : "greyed out",
                   n, picture_score(&im, &button, 60, 60, 88, 55));
        assert_int_equal(n, k == 0);
    }
    image_free(&im);
    image_free(&button);
}

/* ---- files ------------------------------------------------------------------------------------------ */

static struct recording *parse(const char *text, struct err *e)
{
    *e = (struct err)ERR_INIT;
    return recording_parse(text, strlen(text), "f", e);
}

static void t_file(void **state)
{
    struct recording_step s = {.pause = 1.5, .has_target = true, .class = "Editor"};
    struct err e = ERR_INIT;
    struct buf text;
    s.action = (struct action){.kind = ACT_CLICK,
                               .x = 30,
                               .y = 40,
                               .x2 = ACTION_ABSENT,
                               .y2 = ACTION_ABSENT,
                               .button = 3,
                               .count = 2,
                               .nhold = 1,
                               .hold = {XK_Control_L}};
    s.target = (struct recording_target){.x = 30,
                                         .y = 40,
                                         .class = "Editor",
                                         .title = "\"a\" \xc3\xa9",
                                         .rect = {1, 2, 300, 400},
                                         .n_pictures = 1,
                                         .name = "Save",
                                         .role = "push button",
                                         .fx = 0.25,
                                         .fy = 0.75};
    s.target.pictures[0].x = 7;
    assert_int_equal(image_alloc(&s.target.pictures[0].image, 17, 9, NULL), 0);
    fill(&s.target.pictures[0].image, 0, 0, 17, 9, 0x123456);
    fill(&s.target.pictures[0].image, 3, 3, 5, 5, 0xffaa00);
    buf_init(&text, RECORDING_MAX_BYTES);
    recording_put_head(800, 600, &text);
    assert_int_equal(recording_put_step(&s, &text, &e), 0);
    const struct recording_step wait = {.seconds = 12.5};
    assert_int_equal(recording_put_step(&wait, &text, &e), 0);
    size_t whole = text.len;
    buf_puts(&text, "{\"action\": {\"kind\": \"key\", \"ke"); /* the writer was killed */
    struct recording *r = parse(text.data, &e);
    assert_non_null(r);
    assert_int_equal(r->n, 2);
    assert_int_equal(r->w, 800);
    const struct recording_target *t = &r->steps[0].target;
    assert_true(image_equal(&t->pictures[0].image, &s.target.pictures[0].image));
    assert_int_equal(t->pictures[0].x, 7);
    assert_string_equal(t->title, s.target.title);
    assert_string_equal(t->name, "Save");
    assert_true(t->fx == 0.25 && t->fy == 0.75 && t->rect.w == 300);
    assert_string_equal(r->steps[0].class, "Editor");
    assert_int_equal(r->steps[0].action.hold[0], XK_Control_L);
    assert_int_equal(r->steps[1].action.kind, ACT_NONE);
    assert_true(r->steps[1].seconds == 12.5);
    recording_free(r);
    text.data[whole] = 0;
    /* truncated anywhere: refused, or read up to the last complete step */
    for (size_t cut = 0; cut < whole; cut += 7) {
        char *part = strndup(text.data, cut);
        r = parse(part, &e);
        assert_true(r || *e.text);
        recording_free(r);
        free(part);
    }
    buf_free(&text);
    recording_step_free(&s);
}

/* Images of one colour are small in the file and large in memory. */
static void t_many_pictures(void **state)
{
    enum { SIDE = RECORDING_SIDE, MOST = RECORDING_PIXELS / (SIDE * SIDE) };
    struct recording_step s = {.has_target = true};
    struct err e = ERR_INIT;
    struct buf text;
    s.action = (struct action){.kind = ACT_MOVE, .x2 = ACTION_ABSENT, .y2 = ACTION_ABSENT};
    s.target.n_pictures = 1;
    assert_int_equal(image_alloc(&s.target.pictures[0].image, SIDE, SIDE, NULL), 0);
    fill(&s.target.pictures[0].image, 0, 0, SIDE, SIDE, 0x808080);
    for (int n = MOST; n <= MOST + 1; n++) {
        buf_init(&text, RECORDING_MAX_BYTES);
        recording_put_head(800, 600, &text);
        for (int i = 0; i < n; i++)
            assert_int_equal(recording_put_step(&s, &text, &e), 0);
        struct recording *r = parse(text.data, &e);
        check_note("%d pictures in %zu KiB: %s", n, text.len >> 10, r ? "read" : e.text);
        assert_int_equal(r != NULL, n == MOST);
        recording_free(r);
        buf_free(&text);
    }
    recording_step_free(&s);
}

static void t_bad_files(void **state)
{
#define CLICK "{\"action\": {\"kind\": \"click\"}, "
#define HEAD  "{\"holorun_recording\": 1, \"screen\": [800, 600]}\n"
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "not a recording"},
        {"pyautogui.click(1, 2)\n", "not a recording"},
        {"{\"holorun_recording\": 2, \"screen\": [800, 600]}\n", "f:1: "},
        {"{\"holorun_recording\": 1, \"screen\": [0, 600]}\n", "f:1: 'screen'"},
        {HEAD "nonsense\n", "f:2: "},
        {HEAD "[]\n", "f:2: not a JSON object"},
        {HEAD "{}\n", "f:2: a line needs"},
        {HEAD "\n{\"wait_until\": \"noon\"}\n", "f:3: 'wait_until'"},
        {HEAD "{\"wait_until\": \"window\", \"title\": \"a\"}\n", "f:2: waiting for a window"},
        {HEAD "{\"wait_until\": \"rest\", \"seconds\": -1}\n", "f:2: 'pause' and 'seconds'"},
        {HEAD "{\"action\": {\"kind\": \"fly\"}}\n", "f:2: an action in JSON with a bad 'kind'"},
        {HEAD "{\"action\": {\"kind\": \"goto\", \"text\": \"javascript:1\"}}\n",
         "f:2: a recorded action must be"},
        {HEAD "{\"action\": {\"kind\": \"type\"}}\n", "f:2: the text to type is empty"},
        {HEAD "{\"action\": {\"kind\": \"click\", \"x\": 1, \"y\": 2}}\n",
         "f:2: this action needs a 'target'"},
        {HEAD "{\"action\": {\"kind\": \"click\"}, \"target\": {}}\n", "f:2: a target needs 'at'"},
        {HEAD "{\"action\": {\"kind\": \"click\"}, \"target\": {\"at\": [1, 2e9]}}\n",
         "f:2: a target needs 'at'"},
        {HEAD CLICK "\"target\": {\"at\": [1, 2], \"pictures\": [{\"at\": [0, 0], \"png\": \"!!!!\"}]}}\n",
         "not base64"},
        {HEAD CLICK "\"target\": {\"at\": [1, 2], \"pictures\": [{\"at\": [0, 0], \"png\": \"QUJD\"}]}}\n",
         "f:2: cannot read an image"},
        {HEAD "{\"action\": {\"kind\": \"drag\"}, \"target\": {\"at\": [1, 2]}}\n", "f:2: a drag needs 'to'"},
        {HEAD "{\"action\": {\"kind\": \"scroll\", \"dx\": 1, \"dy\": 1}, \"target\": {\"at\": [1, 2]}}\n",
         "f:2: a scroll needs either"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e;
        struct recording *r = parse(cases[i].text, &e);
        if (r || e.kind != ERR_USAGE || !strstr(e.text, cases[i].why))
            fail_msg("%s\n gave %s", cases[i].text, r ? "no error" : e.text);
    }
    struct err e;
    struct recording *r =
        parse(HEAD "{\"action\": {\"kind\": \"type\", \"text\": \"{{A}} {{B_2}}{{A}} {{x}} {{\"}}\n", &e);
    assert_non_null(r);
    assert_int_equal(r->n_secrets, 2);
    assert_string_equal(r->secrets[1], "B_2");
    recording_free(r);
}

static const struct CMUnitTest tests[] = {
    CLAIM("events become the gestures that a user performs", t_gestures),
    CLAIM("long drags, texts and scrolls stay within their limits", t_long_gestures),
    CLAIM("an image is found at its new position, and not found if it is gone", t_pictures),
    CLAIM("a caret that appears, disappears or moves does not matter, other changes do", t_caret),
    CLAIM("an empty, another or a greyed out button does not match the recorded one", t_not_alike),
    CLAIM("a recording is read as written, or up to the point where its writer was killed", t_file),
    CLAIM("the limits for all images of a file are enforced", t_many_pictures),
    CLAIM("an invalid recording is refused with line and reason", t_bad_files),
};

CHECK_MAIN()
