/* t_layouts.c - tests typing with keyboard settings of real users: layouts with dead keys and levels, several
 * layouts, locks and latches. The user is the server's second keyboard; the XTEST keyboard does not share its
 * settings.
 */
#include "check.h"
#include "stage.h"

/* On many layouts some of these characters are on no key, on a third level or on a dead key. */
static const char text[] = "aZ @~^`'\"{}[]\\|<>#$1+-*/_=?!%&;:.,Q\xc3\xa9\xc3\xb6\xc3\x9f"
                           "\xd1\x84\xd0\xaf\xce\xbb\xe2\x82\xac\xc5\x81";

static void layout(struct stage *t, const char *layouts, const char *variant)
{
    const char *const argv[] = {"setxkbmap", "-layout", layouts,   "-variant",        variant,
                                "-option",   "",        "-option", "grp:caps_toggle", NULL};
    if (xvfb_run(&t->x, argv))
        fail_msg("setxkbmap -layout %s -variant '%s' failed", layouts, variant);
}

/* Presses and releases a key of the user's keyboard. */
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

/* Presses a chord and compares the keysym and modifiers of its last key as a program sees them. */
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
    enum { CAPS = 66 }; /* the key that selects the next layout, in each case */
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
            assert_int_not_equal(group, before); /* the user has selected it */
            types(&t, all[i]);
            chord(&t, XK_Control_L, XK_c, XK_c, ControlMask);
            chord(&t, XK_a, 0, XK_a, 0);
            assert_int_equal(state_of(&t).group, group); /* and it stays selected */
            before = group;
        }
    }
    XCloseDevice(t.other, hers);
    stage_close(&t);
}

static void select_group(struct stage *t, unsigned group)
{
    XkbLockGroup(t->other, XkbUseCoreKbd, group);
    XSync(t->other, False);
}

static void t_between(void **state)
{
    struct stage t;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    layout(&t, "us,ru", "");
    for (unsigned i = 1; i <= 4; i++) {
        must(screen_key(t.s, XK_Shift_L, true, &why));
        select_group(&t, i % 2);
        stage_clear(&t);
        must(screen_key(t.s, XK_c, true, &why));
        must(screen_key(t.s, XK_c, false, &why));
        assert_int_equal(field(stage_events(&t, "key_press"), 0, "keysym"), XK_C);
        must(screen_key(t.s, XK_Shift_L, false, &why));
        assert_int_equal(state_of(&t).group, i % 2);
    }
    stage_close(&t);
}

static int events; /* keys until the user selects another layout */

static int select_other(void *arg, struct err *e)
{
    if (--events == 0)
        select_group(arg, 1);
    return 0;
}

static void t_within(void **state)
{
    struct stage t;
    struct err e = ERR_INIT;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    layout(&t, "us,ru", "");
    screen_set_check(t.s, select_other, &t);
    for (int i = 2; i <= 6; i++) { /* the first check is before the keyboard is read */
        select_group(&t, 0);
        events = i;
        e = (struct err)ERR_INIT;
        if (screen_type(t.s, "abcde", 5, &e) == 0)
            fail_msg("typed, with another layout before key %d", i);
        assert_non_null(strstr(e.text, "layout"));
    }
    screen_set_check(t.s, NULL, NULL);
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
    assert_int_equal(state_of(&t).locked_mods, locked); /* restored */
    chord(&t, XK_Caps_Lock, 0, XK_Caps_Lock, LockMask | ControlMask | Mod2Mask);
    /* the chord pressed Caps Lock */
    assert_int_equal(state_of(&t).locked_mods, locked & ~(unsigned)LockMask);

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
    assert_int_equal(screen_click(t.s, 100, 100, 1, 1, &e), -1); /* would extend a selection */
    assert_non_null(strstr(e.text, "Control"));
    assert_int_equal(screen_button(t.s, 1, true, &e), -1);
    assert_int_equal(screen_drag(t.s, path, 2, 1, 0, &e), -1); /* would copy */
    assert_int_equal(screen_scroll(t.s, 0, 1, &e), -1);        /* would zoom */
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 0);
    XTestFakeDeviceKeyEvent(t.other, hers, control, False, NULL, 0, CurrentTime);
    XSync(t.other, False);
    must(screen_key(t.s, XK_Control_L, true, &why)); /* a modifier held by the program is allowed */
    must(screen_click(t.s, 100, 100, 1, 1, &why));
    must(screen_key(t.s, XK_Control_L, false, &why));
    json_t *ev = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(ev), 1);
    assert_int_equal(field(ev, 0, "state"), ControlMask);
    XCloseDevice(t.other, hers);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("characters on dead keys, on a third level or on no key are typed; chords stay chords", t_layouts),
    CLAIM("a layout that the user selects does not change the typed text, and stays selected", t_groups),
    CLAIM("a layout that the user selects while a key is held is noticed at the next key", t_between),
    CLAIM("a text during which the user selects another layout is unsure", t_within),
    CLAIM("locks and latches of the user do not change the text, and locks are restored", t_locks),
    CLAIM("clicks, drags and scrolls are refused while the user holds a modifier", t_held),
};

CHECK_MAIN()
