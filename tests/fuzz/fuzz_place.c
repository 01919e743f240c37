/* fuzz_place.c - a position as written by a model: byte 0 selects a coordinate space, the rest is the text.
 *
 * Any input gives no position, a position whose pixel is on the screen or rejected, or a message of one
 * line.  A JSON text gives the same position as its value.
 */
#include "actions/place.h"
#include "require.h"

#include <stdlib.h>
#include <string.h>

enum { W = 640, H = 480, SPACES = COORD_FIT + 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dialect *dialects[SPACES];

static void load_all(void)
{
    struct err e = ERR_INIT;
    for (int i = 0; i < SPACES; i++) {
        char *text = dialect_in_space("qwen", (enum coord_space)i, &e);
        dialects[i] = text ? dialect_parse(text, strlen(text), "fuzz", &e) : NULL;
        free(text);
        if (!dialects[i])
            die(ERR_FAILED, "%s", e.text);
    }
}

static void check_place(const struct dialect *d, int rc, const struct place *at, const struct err *e)
{
    struct err why = ERR_INIT;
    double x, y;
    int32_t px, py;
    require(rc ? *e->text && !strchr(e->text, '\n') : !*e->text, "a refusal has a message of one line");
    if (rc || at->absent)
        return;
    bool inside = !dialect_place_position(d, at, W, H, &x, &y, &why);
    require(inside == !dialect_place_pixel(d, at, W, H, &px, &py, &why), "both are inside, or neither");
    require(inside == !*why.text, "a position outside has a message");
    require(!inside || (px >= 0 && px < W && py >= 0 && py < H), "a position is on the screen");
    require(!inside || (x >= 0 && x <= W && y >= 0 && y <= H), "a position is on the screen");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT, other = ERR_INIT;
    struct place at;
    if (!dialects[0])
        load_all();
    if (!size)
        return 0;
    const struct dialect *d = dialects[data[0] % SPACES];
    const char *text = (const char *)data + 1;
    int rc = dialect_read_place(d, text, size - 1, &at, &e);
    check_place(d, rc, &at, &e);
    json_t *v = json_loadb(text, size - 1, JSON_DECODE_ANY, NULL);
    if (v) {
        rc = place_value(v, &at, &other);
        check_place(d, rc, &at, &other);
    }
    json_decref(v);
    return 0;
}
