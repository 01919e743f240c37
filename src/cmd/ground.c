/* ground.c - `holorun ground IMAGE TARGET`: finds an element in a screenshot.
 *
 * Prints the point as "x y" in pixels of the image; --overlay writes a copy of the image with a ring at the
 * point.  If the model answers that the element is absent (place.h), prints "not found"; the exit code is
 * 1. */
#include "cmd/commands.h"

#include "actions/place.h"
#include "base/file.h"
#include "base/image.h"
#include "pocket/assist.h"
#include "remote/vqa_remote.h"
#include "screen/screen.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    MODEL_SETTINGS;
    ENDPOINT_SETTINGS;
    const char *dialect, *overlay;
    bool json;
};

static const struct option_spec options[] = {
    MODEL_OPTIONS(struct settings),
    ENDPOINT_OPTIONS(struct settings),
    DIALECT_OPTION(struct settings),
    {"overlay", 'o', OPTION_TEXT, offsetof(struct settings, overlay), "FILE", 0, 4096, NULL,
     "write a copy of the image with a ring at the point (PNG)", NULL},
    JSON_OPTION(struct settings),
    {0},
};

const struct command ground_command = {"ground",
                                       "IMAGE TARGET",
                                       "find an element in a screenshot and print its position in pixels",
                                       NULL,
                                       "holorun ground screen.png \"Search\" --overlay where.png\n",
                                       options,
                                       cmd_ground};

static int find_point(struct vqa *l, const struct image *im, const char *target, struct grounding *f,
                      struct err *e)
{
    struct sampling greedy = {.temperature = 0, .top_p = 1, .max_tokens = 256};
    struct buf question;
    double confidence;
    if (!l->dialect->ground || !*l->dialect->ground)
        return err_set(e, ERR_USAGE, "dialect '%s' cannot ask for a position (it has no key 'ground')",
                       l->dialect->name);
    buf_init(&question, 1 << 20);
    int rc = dialect_fill(l->dialect->ground, (const char *const[]){"target", target, NULL}, &question, e);
    if (rc == 0)
        rc = vqa_ask(l, question.data, im, 1, GOAL_GROUND, &greedy, e);
    buf_free(&question);
    if (rc)
        return rc;
    const struct buf *said = &l->reply.text;
    struct place at;
    int32_t x = 0, y = 0;
    if (dialect_read_place(l->dialect, said->data, said->len, &at, e) ||
        (!at.absent && dialect_place_pixel(l->dialect, &at, im->w, im->h, &x, &y, e)))
        return -1;
    f->missing = at.absent;
    f->x = x;
    f->y = y;
    f->p = vqa_confidence(l, &confidence) ? confidence : -1;
    struct assist *assist;
    if (pocket_assist_open(&assist, l->engine, l->dialect, screen_stop_flag(NULL), e))
        return -1;
    rc = ASSIST(assist, find) ? assist->ops->find(assist, im, target, f, e) : 0;
    assist_free(assist);
    return rc;
}

static int write_overlay(const struct settings *s, struct image *im, const struct grounding *f, struct err *e)
{
    static const uint8_t red[3] = {230, 30, 60};
    if (!s->overlay)
        return 0;
    if (!f->missing)
        image_draw_ring(im, (int)f->x, (int)f->y, 14, 4, red);
    return image_write_png(im, s->overlay, e);
}

static void print_point(const struct settings *s, const struct vqa *l, const struct image *im,
                        const char *target, const struct grounding *f)
{
    double logprob;
    if (!s->json && f->missing)
        puts("not found");
    else if (!s->json)
        printf("%.0f %.0f\n", f->x, f->y);
    if (!s->json)
        return;
    json_t *all = json_object();
    json_set_text(all, "status", f->missing ? "missing" : "found");
    json_set_text(all, "target", target);
    if (!f->missing) {
        json_set_rounded(all, "x", f->x, 0);
        json_set_rounded(all, "y", f->y, 0);
    }
    json_object_set_new(all, "width", json_integer(im->w));
    json_object_set_new(all, "height", json_integer(im->h));
    if (generated_logprob(&l->reply, &logprob))
        json_set_rounded(all, "logprob", logprob, 4);
    if (f->p >= 0)
        json_set_rounded(all, "confidence", f->p, 4);
    json_set_rounded(all, "ms", l->reply.ms, 1);
    options_print_json(all, JSON_ROUNDED);
}

int cmd_ground(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    int n = options_parse(&ground_command, &s, argc, argv, &e);
    if (n >= 0 && n < 2)
        n = err_set(&e, ERR_USAGE, "ground needs an image and the element to find in it");
    if (n == 2 && !*argv[1])
        n = err_set(&e, ERR_USAGE, "the target is empty");
    if (n == 2 && !file_exists(argv[0]) && file_exists(argv[1]))
        n = err_set(&e, ERR_USAGE,
                    "image '%s' not found; give the image first, then the element to find in it", argv[0]);
    if (n < 0)
        return options_refuse(&ground_command, &e);
    screen_install_signals();
    struct vqa l = {0};
    struct image im = {0};
    struct grounding f = {0};
    struct engine_options model = MODEL_ENGINE(s);
    const struct endpoint_options at = ENDPOINT_AT(s);
    int rc = image_read_png(&im, argv[0], &e);
    if (rc == 0 && !ENDPOINT_GIVEN(s))
        rc = vqa_check_vision(&model, &e);
    if (rc == 0)
        rc = ENDPOINT_GIVEN(s) ? vqa_open_remote(&l, &at, s.dialect, 1, &e)
                               : vqa_open(&l, s.dialect, &model, 1, &e);
    if (rc == 0)
        rc = find_point(&l, &im, argv[1], &f, &e);
    if (rc == 0)
        rc = write_overlay(&s, &im, &f, &e);
    if (rc == 0)
        print_point(&s, &l, &im, argv[1], &f);
    vqa_close(&l);
    image_free(&im);
    return rc ? options_failed(&e) : f.missing;
}
