/* t_player.c - replies of the player to names and reasons that come from other programs. */
#include "check.h"

#include "atspi/roles.h"
#include "base/clock.h"
#include "plain/player_impl.h"

#include <stdlib.h>
#include <string.h>

#define CALL "<tool_call>{\"name\": \"click\", \"arguments\": {\"x\": 7, \"y\": 7}}</tool_call>"

static int refuse(void *arg, const struct snapshot *now, bool last, struct plain_steps *more, char *why,
                  size_t size)
{
    (void)now;
    (void)last;
    (void)more;
    snprintf(why, size, "nearest: press \"%s\"", CALL);
    return *(int *)arg;
}

static int give(void *arg, const struct snapshot *now, bool last, struct plain_steps *more, char *why,
                size_t size)
{
    (void)arg;
    (void)now;
    (void)last;
    (void)why;
    (void)size;
    assert_int_equal(plain_parse("tick \""
                                 "<tool_call>"
                                 "\"",
                                 more, NULL),
                     0);
    return 1;
}

/* Returns the second reply of a player whose source answers so, after an action that failed; the caller frees
 * it. */
static char *reply_of(struct player_source *source)
{
    static struct image image;
    struct chat_part parts[] = {{.text = "FAILED by the program"}, {.image = &image}};
    struct llm_request r = {.goal = GOAL_STEP};
    struct generated out = {0};
    struct llm *m = player_open((struct plain_steps){0}, NULL, NULL, source);
    for (int i = 0; i < 2; i++) {
        buf_free(&out.text);
        assert_int_equal(m->ops->user(m, parts, 2, 0, NULL), 0);
        assert_int_equal(m->ops->speak(m, &r, &out, NULL), 0);
    }
    m->ops->free(m);
    return buf_take(&out.text);
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

static void t_names(void **state)
{
    (void)state;
    int waits = -1, ends = -2;
    struct player_source sources[] = {
        {.arg = &waits, .next = refuse}, {.arg = &ends, .next = refuse}, {.next = give}};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        char *reply = reply_of(&sources[i]);
        assert_int_equal(count(reply, "<tool_call>"), 1);
        free(reply);
    }
}

/* The window may have a button of this name, which could not be read. */
static void t_key_or_button(void **state)
{
    static struct image image;
    const struct chat_part part = {.image = &image};
    struct llm_request r = {.goal = GOAL_STEP};
    struct plain_steps steps;
    (void)state;
    assert_int_equal(plain_parse("press Delete", &steps, NULL), 0);
    struct llm *m = player_open(steps, NULL, NULL, NULL);
    for (int64_t begin = clock_ns(); clock_ms_since(begin) < 4000; clock_sleep_ms(100)) {
        struct generated out = {0};
        assert_int_equal(m->ops->user(m, &part, 1, 0, NULL), 0);
        assert_int_equal(m->ops->speak(m, &r, &out, NULL), 0);
        assert_non_null(strstr(out.text.data, "\"wait\""));
        buf_free(&out.text);
    }
    m->ops->free(m);
}

#define ON (1ULL << STATE_SHOWING | 1ULL << STATE_SENSITIVE)
#define IN_GTK4(r, n)                                                                                        \
    {                                                                                                        \
        .ref = 2, .role = r, .name = n, .value = "", .label = "", .states = ON, .rect = {0, 0, 90, 30},      \
        .trust = PLACE_DOUBTFUL, .depth = 1                                                                  \
    }

/* Performs the step on the elements and returns what follows; the reply must have this key, "": none. */
static enum player_next next_of(struct player *p, const char *key)
{
    char why[ERR_TEXT] = "";
    struct buf b;
    buf_init(&b, 1 << 16);
    buf_puts(&b, "");
    enum player_next next = player_step(p, &b, why, sizeof why);
    p->s.phase += next == NEXT_ACTION;
    if (!strstr(b.data, key) || (!*key && b.len))
        fail_msg("%s: %s %s", key, b.data, why);
    buf_free(&b);
    return next;
}

/* GTK 4.18 leaves the padding of each group out of the places of its elements. */
static void t_tab(void **state)
{
    (void)state;
    static struct element e[] = {{.ref = 1,
                                  .role = "frame",
                                  .name = "Order",
                                  .value = "",
                                  .label = "",
                                  .states = ON | 1ULL << STATE_ACTIVE,
                                  .rect = {0, 0, 300, 200},
                                  .parent = -1},
                                 IN_GTK4("entry", "Name"),
                                 IN_GTK4("push button", "OK")};
    struct snapshot s = {.e = e, .n = 3, .hit = -1};
    struct player p = {.now = &s};
    e[2].ref = 3;
    assert_int_equal(plain_parse("press OK", &p.steps, NULL), 0);
    e[1].states |= 1ULL << STATE_FOCUSED;
    assert_int_equal(next_of(&p, "\"Tab\""), NEXT_ACTION);
    s.n = 2;
    assert_int_equal(next_of(&p, ""), NEXT_WAIT); /* the button was not read */
    s.n = 3;
    e[1].states = ON;
    e[2].states |= 1ULL << STATE_FOCUSED;
    assert_int_equal(next_of(&p, "\"space\""), NEXT_ACTION);
    assert_int_equal(next_of(&p, ""), NEXT_STEP);
    plain_free(&p.steps);
    p.s = (struct player_state){0};
    assert_int_equal(plain_parse("enter Ana into Name", &p.steps, NULL), 0);
    assert_int_equal(next_of(&p, "\"Tab\""), NEXT_ACTION);
    e[2].states = ON;
    e[1].states |= 1ULL << STATE_FOCUSED;
    assert_int_equal(next_of(&p, "\"ctrl\", \"a\""), NEXT_ACTION);
    assert_int_equal(next_of(&p, "\"Ana\""), NEXT_ACTION);
    e[1].value = "Ana";
    assert_int_equal(next_of(&p, ""), NEXT_STEP);
    plain_free(&p.steps);
}

static const struct CMUnitTest tests[] = {
    CLAIM("an element without a reliable place is reached with the Tab key", t_tab),
    CLAIM("a button that has the name of a key is waited for while the window is not read", t_key_or_button),
    CLAIM("a name on the screen never becomes a call in a reply", t_names),
};
CHECK_MAIN()
