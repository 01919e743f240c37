/* stage.c - see stage.h. */
#include "stage.h"

#include "base/clock.h"
#include "base/file.h"

/* cmocka.h needs these headers first */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct err why;
bool stage_still;

void stage_open(struct stage *t)
{
    stage_open_sized(t, "800x600x24");
}

void stage_open_sized(struct stage *t, const char *size)
{
    memset(t, 0, sizeof *t);
    screen_stop_all(0);
    if (xvfb_start(&t->x, size, NULL))
        skip();
    snprintf(t->events, sizeof t->events, "%s/events.jsonl", t->x.dir);
    const char *argv[] = {helper_path("xclient"), t->events, "--geometry", "600x500+20+20", "--xi2", NULL};
    if (access(argv[0], X_OK)) {
        printf("           %s is not built\n", argv[0]);
        xvfb_stop(&t->x);
        skip();
    }
    if (stage_still)
        setenv("XCLIENT_STILL", "1", 1);
    xvfb_spawn(&t->x, "xclient.log", argv);
    unsetenv("XCLIENT_STILL");
    assert_true(xvfb_wait_window(&t->x, "^xclient$"));
    struct err e = ERR_INIT;
    t->s = screen_open(NULL, &e);
    if (!t->s)
        fail_msg("%s", e.text);
    t->other = XOpenDisplay(NULL);
    assert_non_null(t->other);
}

void stage_close(struct stage *t)
{
    screen_close(t->s);
    if (t->other)
        XCloseDisplay(t->other);
    json_decref(t->seen);
    xvfb_stop(&t->x);
    screen_stop_all(0);
    stage_still = false;
}

json_t *stage_events(struct stage *t, const char *name)
{
    long size = -1, now = 0;
    char *text = NULL;
    size_t len = 0;
    for (int i = 0; i < 60 && now != size; i++) {
        size = now;
        clock_sleep_ms(50);
        free(text);
        assert_int_equal(file_read(t->events, 16 << 20, &text, &len, NULL), 0);
        now = (long)len;
    }
    json_decref(t->seen);
    t->seen = json_array();
    char *save, *line = strtok_r(text + t->skip, "\n", &save);
    for (; line; line = strtok_r(NULL, "\n", &save)) {
        json_t *o = json_loads(line, 0, NULL);
        const char *ev = json_string_value(json_object_get(o, "event"));
        if (ev &&
            (name ? !strcmp(ev, name) : strcmp(ev, "motion") && strncmp(ev, "raw", 3) && strcmp(ev, "ready")))
            json_array_append(t->seen, o);
        json_decref(o);
    }
    free(text);
    return t->seen;
}

void stage_clear(struct stage *t)
{
    char *text;
    size_t len;
    clock_sleep_ms(50);
    assert_int_equal(file_read(t->events, 16 << 20, &text, &len, NULL), 0);
    t->skip = (long)len;
    free(text);
}

json_int_t field(json_t *list, size_t i, const char *name)
{
    return json_integer_value(json_object_get(json_array_get(list, i), name));
}

const char *word(json_t *list, size_t i, const char *name)
{
    const char *s = json_string_value(json_object_get(json_array_get(list, i), name));
    return s ? s : "";
}

int pressed(Display *dpy)
{
    char keys[32];
    Window r, c;
    int x, y, wx, wy, n = 0;
    unsigned mask;
    XQueryKeymap(dpy, keys);
    for (int i = 0; i < 256; i++)
        n += keys[i / 8] >> (i % 8) & 1;
    XQueryPointer(dpy, DefaultRootWindow(dpy), &r, &c, &x, &y, &wx, &wy, &mask);
    return n +
           __builtin_popcount(mask & (Button1Mask | Button2Mask | Button3Mask | Button4Mask | Button5Mask));
}

void pointer_at(Display *dpy, int *x, int *y)
{
    Window r, c;
    int wx, wy;
    unsigned mask;
    XQueryPointer(dpy, DefaultRootWindow(dpy), &r, &c, x, y, &wx, &wy, &mask);
}

int borrowed_keycodes(Display *dpy)
{
    int lo, hi, per, n = 0;
    XDisplayKeycodes(dpy, &lo, &hi);
    KeySym *map = XGetKeyboardMapping(dpy, (KeyCode)lo, hi - lo + 1, &per);
    for (int i = 0; i < (hi - lo + 1) * per; i++)
        n += map[i] > 0x01000000 && map[i] < 0x01110000;
    XFree(map);
    return n;
}

static XDevice *persons_device(Display *dpy, int use)
{
    int n = 0;
    XDevice *found = NULL;
    XDeviceInfo *list = XListInputDevices(dpy, &n);
    for (int i = 0; i < n && !found; i++)
        if (list[i].use == use && !strstr(list[i].name, "XTEST"))
            found = XOpenDevice(dpy, list[i].id);
    XFreeDeviceList(list);
    return found;
}

XDevice *persons_keyboard(Display *dpy)
{
    return persons_device(dpy, IsXExtensionKeyboard);
}

XDevice *persons_mouse(Display *dpy)
{
    return persons_device(dpy, IsXExtensionPointer);
}

struct action action_of(enum action_kind kind)
{
    return (struct action){
        .kind = kind, .x = ACTION_ABSENT, .y = ACTION_ABSENT, .x2 = ACTION_ABSENT, .y2 = ACTION_ABSENT};
}
