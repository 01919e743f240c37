/* fuzz_step.c - any bytes as a command, as a breakpoint, as a change to an action, and as a reply with
 * slots. */
#include "base/image.h"
#include "step/private.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void change(const char *text)
{
    static const struct image frame = {NULL, 640, 480};
    struct step s = {.nactions = 1};
    s.actions[0] = (struct action){.kind = ACT_DRAG, .x = 1, .y = 2, .x2 = 3, .y2 = 4, .button = 1};
    if (edit_json(&s, text, &frame, NULL) == 0) {
        const struct action *a = &s.actions[0];
        if (a->x != ACTION_ABSENT && (a->x < 0 || a->x >= frame.w || a->y < 0 || a->y >= frame.h))
            abort();
        edit_target(&s, false, 5, 6, &frame, NULL);
        edit_text(&s, text, NULL);
    }
    step_free(&s);
}

static void find_slots(const char *text, size_t len)
{
    static struct dialect *dialects[4];
    static const char *const names[] = {"pocket-wide", "holo3", "anthropic-computer", "openai-computer"};
    struct slot slots[SLOTS_MAX];
    for (int i = 0; i < 4; i++) {
        if (!dialects[i])
            dialects[i] = dialect_load(names[i], NULL);
        int n = dialect_slots(dialects[i], text, len, slots, SLOTS_MAX);
        for (int k = 0; k < n; k++) {
            int32_t x, y;
            if (slots[k].begin > slots[k].end || slots[k].end > len)
                abort();
            dialect_slot_end(dialects[i], slots[k].kind, text + slots[k].begin, len - slots[k].begin);
            if (slots[k].kind == SLOT_POINT &&
                dialect_slot_point(dialects[i], text + slots[k].begin, slots[k].end - slots[k].begin, 640,
                                   480, &x, &y) == 0 &&
                (x < 0 || x >= 640 || y < 0 || y >= 480))
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct step_command c;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    step_parse(text, &c, NULL);
    break_free(break_parse(text, NULL));
    change(text);
    find_slots(text, size);
    free(text);
    return 0;
}
