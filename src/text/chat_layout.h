/* chat_layout.h - a rendered chat template before it is encoded: a list of texts and images.
 *
 * Texts between two images are encoded together, as in the rendered template, but added tokens are
 * recognised only in the template's own segments.
 */
#ifndef HOLORUN_TEXT_CHAT_LAYOUT_H
#define HOLORUN_TEXT_CHAT_LAYOUT_H

#include "base/buf.h"
#include "text/chat_template.h"

/* The markers around turns.  A tokenizer with ChatML's tokens (Nemotron 3) gets ChatML, any other one the
 * markers of Nemotron VL. */
struct layout_marks {
    const char *system, *user, *reply; /* open a turn */
    const char *close;                 /* of system and user */
    const char *newline;               /* before the end of a reply */
    const char *end;                   /* of a reply: a token */
    const char *tools[2];              /* around the list of tools */
    bool trim;                         /* cut white space at both ends of texts */
    bool in_order;                     /* images stand where they are among the texts, not before them */
    const char *think[2];              /* after `reply`: without thinking, with */
    bool drops_reasoning;              /* a later prompt has a reply without how it was opened */
    const char *greeting;              /* system text where none is given; NULL: no system turn then */
};

/* Strings are borrowed from the traits. */
struct layout_marks layout_marks_of(const struct tokenizer *t, const struct template_traits *h);
struct layout_marks layout_marks_vl(const struct template_traits *h);
bool layout_is_chatml(const struct tokenizer *t);

/* Reads from a Jinja template what it writes before and after its list of tools; false: not understood. */
bool template_read_tools(const char *text, struct buf *before, struct buf *after);
bool template_read_qwen_tools(const char *text, struct buf *before, struct buf *after);

struct layout_segment {
    size_t at, len; /* bytes of `texts` */
    bool special;   /* added tokens are recognised in it */
    const struct image *image;
};

struct layout {
    struct buf texts;
    struct layout_segment *segments;
    int n, cap;
};

struct layout layout_new(void);
void layout_free(struct layout *l);

/* Text of the template, text from outside, which is never an added token, and text of the model, in which
 * only markers of the template are plain text. */
void layout_template(struct layout *l, const char *text);
void layout_text(struct layout *l, const char *text, size_t len);
void layout_reply(struct layout *l, const char *text);
void layout_image(struct layout *l, const struct image *im);

/* The order of the published template: all images, numbered when there are several, and a newline. */
void layout_images_first(struct layout *l, const struct chat_part *parts, int n);

/* Trims what was laid out since segment `from`; an image is not white space.  false: nothing is left. */
bool layout_trim(struct layout *l, int from);

/* The whole conversation as the published template renders it. */
int layout_conversation(struct layout *l, const struct chat_conversation *c, struct layout_marks marks,
                        struct err *e);

/* Receives the encoded layout, in order. */
struct layout_sink {
    int (*tokens)(void *arg, const int32_t *ids, int64_t n, struct err *e);
    int (*image)(void *arg, const struct image *im, struct err *e);
    void *arg;
};
int layout_encode(const struct layout *l, const struct tokenizer *t, const struct layout_sink *to,
                  struct err *e);

/* The texts of a message behind each other; the caller frees them. */
char *chat_message_text(const struct chat_message *m);

#endif
