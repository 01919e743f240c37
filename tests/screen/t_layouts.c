/* t_layouts.c - keyboards as people have them: layouts with dead keys and levels, several layouts of
 * which one is chosen, locks and latches.  The person is the server's other keyboard: what she chooses
 * there the XTEST keyboard does not know.
 */
#include "check.h"
#include "stage.h"

/* Of many keyboards some characters are on no key, on a third level, or on a dead key. */
static const char text[] = "aZ @~^`'\"{}[]\\|<>#$1+-*/_=?!%&;:.,Q\xc3\xa9\xc3\xb6\xc3\x9f"
                           "\xd1\x84\xd0\xaf\xce\xbb\xe2\x82\xac\xc5\x81";

static void layout(struct stage *t, const char *layouts, const char *variant)
{
    const char *const argv[] = {"setxkbmap", "-layout", layouts,   "-variant",        variant,
                                "-option",   "",        "-option", "grp:caps_toggle", NULL};
    if (xvfb_run(&t->x, argv))
        fail_msg("setxkbmap -layout %s -variant '%s' failed", layouts, variant);
}

/* She presses a key and lets it go, on her own keyboard. */
static void person_taps(struct stage *t, XDevice *hers, int keycode)
{
    XTestFakeDeviceKeyEvent(t->other, hers, (unsigned)keycode, True, NULL, 0, CurrentTime);
    XTestFakeDeviceKeyEvent(t->other, hers, (unsigned)keycode, False, NULL, 0, CurrentTime);
    XSync(t->other, False);
}

static XkbStateRec state_of(struct stage *t)
{
    XkbStateRec st;
    XkbGetState(t->other, XkbUseCoreKbd, &st);
    return st;
}

static void types(struct stage *t, const char *where)
{
    char got[512] = "";
    stage_clear(t);
    must(screen_type(t->s, text, sizeof text - 1, &why));
    json_t *ev = stage_events(t, "key_press");
    for (size_t i = 0; i < json_array_size(ev); i++)
        strncat(got, word(ev, i, "text"), sizeof got - strlen(got) - 1);
    if (strcmp(got, text) != 0)
        fail_msg("%s: typed\n  %s\ngot\n  %s", where, text, got);
}

/* The last key of a chord, as a program sees it. */
static void chord(struct stage *t, uint32_t a, uint32_t b, uint32_t want, unsigned modifiers)
{
    const uint32_t keys[] = {a, b};
    stage_clear(t);
    must(screen_chord(t->s, keys, b ? 2 : 1, &why));
    json_t *ev = stage_events(t, "key_press");
    size_t n = json_array_size(ev);
    assert_true(n > 0);
    assert_int_equal(field(ev, n - 1, "keysym"), want);
    assert_int_equal(field(ev, n - 1, "state") & 0xff, modifiers);
}

static void t_layouts(void **state)
{
    static const char *const all[][2] = {{"de", ""}, {"fr", ""}, {"us", "intl"}, {"ru", ""}, {"de", "neo"}};
    struct stage t;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        layout(&t, all[i][0], all[i][1]);
        types(&t, all[i][0]);
        chord(&t, XK_Control_L, XK_c, XK_c, ControlMask);
        assert_int_equal(pressed(t.other), 0);
    }
    stage_close(&t);
}

static void t_groups(void **state)
{
    static const char *const all[] = {"us,ru", "us,de,gr"};
    enum { CAPS = 66 }; /* on every one of them the key that goes on to the next layout */
    struct stage t;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    XDevice *hers = persons_keyboard(t.other);
    assert_non_null(hers);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        layout(&t, all[i], "");
        int before = state_of(&t).group;
        for (int k = 0; k < 2; k++) {
            person_taps(&t, hers, CAPS);
            int group = state_of(&t).group;
            assert_int_not_equal(group, before); /* she has chosen */
            types(&t, all[i]);
            chord(&t, XK_Control_L, XK_c, XK_c, ControlMask);
            chord(&t, XK_a, 0, XK_a, 0);
            assert_int_equal(state_of(&t).group, group); /* and it stays so */
            before = group;
        }
    }
    XCloseDevice(t.other, hers);
    stage_close(&t);
}

static void t_locks(void **state)
{
    struct stage t;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    XDevice *hers = persons_keyboard(t.other);
    assert_non_null(hers);
    person_taps(&t, hers, XKeysymToKeycode(t.other, XK_Caps_Lock));
    person_taps(&t, hers, XKeysymToKeycode(t.other, XK_Num_Lock));
    XkbLockModifiers(t.other, XkbUseCoreKbd, ControlMask, ControlMask); /* sticky keys, pressed twice */
    XSync(t.other, False);
    unsigned locked = state_of(&t).locked_mods;
    assert_int_equal(locked & (LockMask | ControlMask), LockMask | ControlMask);
    types(&t, "locked");
    chord(&t, XK_a, 0, XK_a, Mod2Mask);
    chord(&t, XK_A, 0, XK_A, ShiftMask | Mod2Mask);
    chord(&t, XK_KP_1, 0, XK_KP_1, Mod2Mask);
    assert_int_equal(state_of(&t).locked_mods, locked); /* as it was */
    chord(&t, XK_Caps_Lock, 0, XK_Caps_Lock, LockMask | ControlMask | Mod2Mask);
    assert_int_equal(state_of(&t).locked_mods, locked & ~(unsigned)LockMask); /* asked for */

    XkbLockModifiers(t.other, XkbUseCoreKbd, 0xff, 0);
    XkbLatchModifiers(t.other, XkbUseCoreKbd, ShiftMask, ShiftMask); /* sticky keys, pressed once */
    XSync(t.other, False);
    types(&t, "latched");
    XCloseDevice(t.other, hers);
    stage_close(&t);
}

static void t_held(void **state)
{
    struct stage t;
    struct err e = ERR_INIT;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    XDevice *hers = persons_keyboard(t.other);
    assert_non_null(hers);
    unsigned control = XKeysymToKeycode(t.other, XK_Control_R);
    XTestFakeDeviceKeyEvent(t.other, hers, control, True, NULL, 0, CurrentTime);
    XSync(t.other, False);
    const int path[] = {100, 100, 200, 200};
    assert_int_equal(screen_click(t.s, 100, 100, 1, 1, &e), -1); /* would be one more of a selection */
    assert_non_null(strstr(e.text, "Control"));
    assert_int_equal(screen_button(t.s, 1, true, &e), -1);
    assert_int_equal(screen_drag(t.s, path, 2, 1, 0, &e), -1); /* would be a copy */
    assert_int_equal(screen_scroll(t.s, 0, 1, &e), -1);        /* would be another size of letters */
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 0);
    XTestFakeDeviceKeyEvent(t.other, hers, control, False, NULL, 0, CurrentTime);
    XSync(t.other, False);
    must(screen_key(t.s, XK_Control_L, true, &why)); /* our own is no hindrance */
    must(screen_click(t.s, 100, 100, 1, 1, &why));
    must(screen_key(t.s, XK_Control_L, false, &why));
    json_t *ev = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(ev), 1);
    assert_int_equal(field(ev, 0, "state"), ControlMask);
    XCloseDevice(t.other, hers);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("what layouts have on dead keys, on a third level or not at all is typed, and chords are theirs",
          t_layouts),
    CLAIM("a layout that a person chooses on her own keyboard changes nothing of what is typed, and stays",
          t_groups),
    CLAIM("locks and latches of a person do not change what is typed, and locks are back after it", t_locks),
    CLAIM("a modifier that a person holds is not clicked, dragged or scrolled through", t_held),
};

CHECK_MAIN()
