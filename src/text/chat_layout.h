/* chat_layout.h - turns of a conversation being put together: what the chat template becomes before it is encoded.
 *
 * A list of texts and images.  Texts between two images are encoded together, as they would be in the
 * rendered template, but only our own pieces may hold added tokens.
 */
#ifndef HOLORUN_TEXT_CHAT_LAYOUT_H
#define HOLORUN_TEXT_CHAT_LAYOUT_H

#include "base/buf.h"
#include "text/chat_template.h"

/* What stands around the turns.  Nemotron 3 has ChatML, told by its tokens; everything else Nemotron VL's. */
struct layout_marks {
    const char *system, *user, *reply; /* open a turn */
    const char *close;                 /* of system and user */
    const char *newline;               /* before the end of a reply */
    const char *end;                   /* of a reply: a token */
    const char *tools[2];              /* around the list of tools */
    bool trim;                         /* texts of turns */
};

/* Borrowed from the traits. */
struct layout_marks layout_marks_of(const struct tokenizer *t, const struct template_traits *h);
struct layout_marks layout_marks_vl(const struct template_traits *h);
bool layout_is_chatml(const struct tokenizer *t);

/* What a template writes in front of its tools and behind them; false: it is not understood. */
bool chat_tools_read(const char *text, struct buf *front, struct buf *behind);

struct layout_segment {
    size_t at, len; /* of the texts */
    bool special;   /* added tokens are recognised in it */
    const struct image *image;
};

struct layout {
    struct buf texts;
    struct layout_segment *pieces;
    int n, cap;
};

struct layout layout_new(void);
void layout_free(struct layout *l);

void layout_template(struct layout *l, const char *text);         /* our own words */
void layout_text(struct layout *l, const char *text, size_t len); /* somebody else's: never a mark */
void layout_reply(struct layout *l, const char *text);            /* the model's: no mark of the template */
void layout_image(struct layout *l, const struct image *im);

/* The published order: all images, numbered when there are several, then a newline; the text follows. */
void layout_images_first(struct layout *l, const struct chat_part *parts, int n);

/* Cuts white space away at both ends of what was laid out since piece `from`, an image being none; false: nothing is
 * left. */
bool layout_trim(struct layout *l, int from);

/* The whole conversation as the published template renders it. */
int layout_conversation(struct layout *l, const struct chat_conversation *c, struct layout_marks marks,
                        struct err *e);

/* Where the encoded layout goes, in order. */
struct layout_sink {
    int (*tokens)(void *arg, const int32_t *ids, int64_t n, struct err *e);
    int (*image)(void *arg, const struct image *im, struct err *e);
    void *arg;
};
int layout_encode(const struct layout *l, const struct tokenizer *t, const struct layout_sink *to,
                  struct err *e);
char *layout_render(const struct layout *l); /* "<image>" for an image; the caller frees it */

#endif
