/* fuzz_recording.c - any bytes as a recording: rejected with a reason, or steps within their limits, which
 * can be written and read back unchanged, and images that can be searched.
 */
#include "record/picture.h"
#include "record/recording.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void search(const struct recording_target *t)
{
    struct image screen = {0};
    struct picture_match m[PICTURE_MATCHES];
    if (!t->n_pictures || image_alloc(&screen, 128, 96, NULL))
        return;
    memset(screen.rgb, 100, (size_t)3 * 128 * 96);
    for (int i = 0; i < t->n_pictures; i++) {
        const struct recording_picture *p = &t->pictures[i];
        picture_find(&screen, &p->image, p->x, p->y, m);
        picture_score_near(&screen, &p->image, 10, 10, 3, p->x, p->y, &m[0]);
        picture_find(&p->image, &p->image, p->x, p->y, m);
    }
    image_free(&screen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct buf again;
    struct recording *r = recording_parse((const char *)data, size, "fuzz", &e), *second;
    if (!r) {
        if (e.kind != ERR_USAGE || !*e.text)
            bug("a refusal without a reason");
        return 0;
    }
    buf_init(&again, 4 * RECORDING_MAX_BYTES);
    recording_put_head(r->w, r->h, &again);
    bool whole = true;
    for (int i = 0; i < r->n; i++) {
        search(&r->steps[i].target);
        whole = whole && recording_put_step(&r->steps[i], &again, &e) == 0;
    }
    second = whole ? recording_parse(again.data, again.len, "again", &e) : NULL;
    if (whole && (!second || second->n != r->n))
        bug("a written recording cannot be read: %s", e.text);
    recording_free(second);
    recording_free(r);
    buf_free(&again);
    return 0;
}
