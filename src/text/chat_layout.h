/* chat_layout.h - a rendered chat template before encoding: a list of texts and images.
 *
 * Texts between two images are encoded together, as in the rendered template, but added tokens are
 * recognized only in the template's own segments. */
#pragma once

#include "base/buf.h"
#include "text/chat_template.h"

/* Returns whether the tokenizer has ChatML's tokens. */
bool layout_is_chatml(const struct tokenizer *t);

struct layout_segment {
    size_t at, len; /* byte range of `texts` */
    bool special;   /* added tokens are recognized in it */
    const struct image *image;
};

struct layout {
    struct buf texts;
    struct layout_segment *segments;
    int n, cap;
};

struct layout layout_new(void);
void layout_free(struct layout *l);

/* Append a segment: text of the template; external text, which is never an added token; text of the model,
 * in which only template markers are plain text; an image. */
void layout_template(struct layout *l, const char *text);
void layout_template_part(struct layout *l, const char *text, size_t len);
void layout_text(struct layout *l, const char *text, size_t len);
void layout_reply(struct layout *l, const char *text, size_t len);
void layout_image(struct layout *l, const struct image *im);

/* Lays out the images of a message like Nemotron VL's template: numbered if there are several, followed by
 * a newline. */
void layout_images_first(struct layout *l, const struct chat_part *parts, int n);

/* Removes whitespace, like Python's strip(), from the ends of the text since segment `from`; sides:
 * LAYOUT_TRIM_ bits. An image is not whitespace. Returns false if nothing remains. */
enum { LAYOUT_TRIM_BEGIN = 1, LAYOUT_TRIM_END = 2 };
bool layout_trim(struct layout *l, int from, unsigned sides);

/* Receives the encoded layout, in order. */
struct layout_sink {
    int (*tokens)(void *arg, const int32_t *ids, int64_t n, struct err *e);
    int (*image)(void *arg, const struct image *im, struct err *e);
    void *arg;
};
int layout_encode(const struct layout *l, const struct tokenizer *t, const struct layout_sink *to,
                  struct err *e);

/* Encodes segments [from, to). */
int layout_encode_part(const struct layout *l, int from, int to, const struct tokenizer *t,
                       const struct layout_sink *sink, struct err *e);

/* Splits a segment at byte `at` of its text. Returns the index of the second part. */
int layout_split(struct layout *l, int segment, size_t at);

/* Returns whether the layout ends inside a <think> block that the template opened. */
bool layout_opens_thought(const struct layout *l);
