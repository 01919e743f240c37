/* ground.c - `holorun ground IMAGE TARGET` finds something in a screenshot.
 *
 * Prints the point as "x y" in pixels of the image; --overlay writes a copy of the image with a ring at
 * the point.
 */
#include "cmd/commands.h"

#include "base/file.h"
#include "base/image.h"
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
     "write the image with a ring at the point, as PNG", NULL},
    JSON_OPTION(struct settings),
    {0},
};

const struct command ground_command = {"ground",
                                       "IMAGE TARGET",
                                       "find something in a screenshot and print its place in pixels",
                                       NULL,
                                       "holorun ground screen.png \"Search\" --overlay where.png\n",
                                       options,
                                       cmd_ground};

static int find_point(struct vqa *l, const struct image *im, const char *target, double *x, double *y,
                      struct err *e)
{
    struct sampling greedy = {.temperature = 0, .top_p = 1, .max_tokens = 256};
    struct buf question;
    if (!l->dialect->ground || !*l->dialect->ground)
        return err_set(e, ERR_USAGE, "dialect '%s' has no question for a place (key 'ground')",
                       l->dialect->name);
    buf_init(&question, 1 << 20);
    int rc = dialect_fill(l->dialect->ground, (const char *const[]){"target", target, NULL}, &question, e);
    if (rc == 0)
        rc = vqa_ask(l, question.data, im, 1, GOAL_GROUND, &greedy, e);
    if (rc == 0)
        rc = dialect_parse_point(l->dialect, l->reply.text.data, l->reply.text.len, im->w, im->h, x, y, e);
    buf_free(&question);
    return rc;
}

static int write_overlay(const struct settings *s, struct image *im, double x, double y, struct err *e)
{
    static const uint8_t red[3] = {230, 30, 60};
    if (!s->overlay)
        return 0;
    image_draw_ring(im, (int)x, (int)y, 14, 4, red);
    return image_write_png(im, s->overlay, e);
}

static void print_point(const struct settings *s, const struct vqa *l, const struct image *im,
                        const char *target, double x, double y)
{
    if (!s->json) {
        printf("%.0f %.0f\n", x, y);
        return;
    }
    double sum = 0;
    for (int i = 0; i < l->reply.n && l->reply.choices; i++)
        sum += l->reply.choices[i].forced ? 0 : (double)l->reply.choices[i].logprob;
    struct buf out;
    buf_init(&out, 1 << 20);
    buf_puts(&out, "{\"status\": \"found\"");
    buf_put_member(&out, "target", target);
    buf_printf(&out, ", \"x\": %.0f, \"y\": %.0f, \"width\": %d, \"height\": %d", x, y, im->w, im->h);
    if (l->reply.choices)
        buf_printf(&out, ", \"logprob\": %.4f", sum);
    buf_printf(&out, ", \"ms\": %.1f}", l->reply.ms);
    puts(out.data);
    buf_free(&out);
}

int cmd_ground(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    int n = options_parse(&ground_command, &s, argc, argv, &e);
    if (n >= 0 && n < 2)
        n = err_set(&e, ERR_USAGE, "ground takes an image and what to find in it");
    if (n == 2 && !*argv[1])
        n = err_set(&e, ERR_USAGE, "the target is empty");
    if (n == 2 && !file_exists(argv[0]) && file_exists(argv[1]))
        n = err_set(&e, ERR_USAGE,
                    "there is no picture '%s'; the picture comes first, then what to find in it", argv[0]);
    if (n < 0)
        return options_refuse(&ground_command, &e);
    screen_install_signals();
    struct vqa l = {0};
    struct image im = {0};
    double x = 0, y = 0;
    struct engine_options model = MODEL_ENGINE(s);
    const struct endpoint_options at = ENDPOINT_AT(s);
    int rc = image_read_png(&im, argv[0], &e);
    if (rc == 0)
        rc = s.base_url ? vqa_open_remote(&l, &at, s.dialect, 1, &e) : vqa_open(&l, s.dialect, &model, 1, &e);
    if (rc == 0)
        rc = find_point(&l, &im, argv[1], &x, &y, &e);
    if (rc == 0)
        rc = write_overlay(&s, &im, x, y, &e);
    if (rc == 0)
        print_point(&s, &l, &im, argv[1], x, y);
    vqa_close(&l);
    image_free(&im);
    return rc ? options_failed(&e) : 0;
}
