/* fuzz_parse.c - the reply of a model in every dialect: byte 0 selects the dialect, the rest is the text.
 *
 * Any input gives an action that stays inside the screen and survives conversion to JSON and back, or a
 * fault with a message and nothing else.
 */
#include "actions/action.h"
#include "actions/calls.h"
#include "actions/dialect.h"
#include "actions/place.h"
#include "require.h"

#include <string.h>

enum { W = 640, H = 480, MAX_DIALECTS = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dialect *dialects[MAX_DIALECTS];
static int ndialects;

static void load_all(void)
{
    struct err e = ERR_INIT;
    for (const char *const *name = dialect_names(); *name; name++) {
        if (ndialects == MAX_DIALECTS)
            bug("more than %d dialects", MAX_DIALECTS);
        dialects[ndialects] = dialect_load(*name, &e);
        if (!dialects[ndialects++])
            die(ERR_FAILED, "%s", e.text);
    }
}

static void check_action(const struct dialect *d, const struct action *a)
{
    size_t len;
    require(d->verbatim || !a->text || !calls_markup(a->text, strlen(a->text), &len), "markup is not typed");
    require(a->x == ACTION_ABSENT || (a->x >= 0 && a->x < W), "x is on the screen");
    require(a->y == ACTION_ABSENT || (a->y >= 0 && a->y < H), "y is on the screen");
    require((a->x == ACTION_ABSENT) == (a->y == ACTION_ABSENT), "a position has two numbers");
    require(a->x2 == ACTION_ABSENT || (a->x2 >= 0 && a->x2 < W), "x2 is on the screen");
    require(a->y2 == ACTION_ABSENT || (a->y2 >= 0 && a->y2 < H), "y2 is on the screen");
    require(a->nkeys >= 0 && a->nkeys <= ACTION_MAX_KEYS && a->nhold <= ACTION_MAX_HOLD, "keys are counted");
    require(!action_ends_run(a->kind) || a->text, "an end has a text");
    struct buf one, two;
    struct action back;
    struct err e = ERR_INIT;
    buf_init(&one, 1 << 20);
    buf_init(&two, 1 << 20);
    action_to_json(a, &one);
    if (action_from_json(one.data, one.len, &back, &e))
        bug("%s", e.text);
    action_to_json(&back, &two);
    require(!strcmp(one.data, two.data), "an action is equal to its own JSON");
    buf_clear(&one);
    action_describe(&back, &one);
    action_free(&back);
    buf_free(&one);
    buf_free(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct step s;
    struct place at;
    int32_t x, y;
    if (!ndialects)
        load_all();
    if (!size)
        return 0;
    const struct dialect *d = dialects[data[0] % ndialects];
    const char *text = (const char *)data + 1;
    enum action_fault f = action_parse(text, size - 1, d, W, H, &s, &e);
    require(f ? *e.text && !s.nactions : s.nactions > 0, "a fault has a message, a step an action");
    for (int i = 0; i < s.nactions; i++)
        check_action(d, &s.actions[i]);
    step_free(&s);
    if (!dialect_read_place(d, text, size - 1, &at, &e) && !at.absent &&
        !dialect_place_pixel(d, &at, W, H, &x, &y, &e))
        require(x >= 0 && x < W && y >= 0 && y < H, "a position is on the screen");
    return 0;
}
