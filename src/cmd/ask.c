/* ask.c - `holorun ask QUESTION [IMAGE...]` answers a question, about images or without; `holorun ask --chat
 * FILE` continues a conversation.
 *
 * Prints the answer; with --json also each token with its log-probability. */
#include "cmd/commands.h"

#include "agent/task_asks.h"
#include "base/image.h"
#include "base/utf8.h"
#include "pocket/assist.h"
#include "remote/vqa_remote.h"
#include "screen/screen.h"
#include "screen/x11/displays.h"
#include "text/conversation.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_IMAGES = 6 };

struct settings {
    MODEL_SETTINGS;
    ENDPOINT_SETTINGS;
    const char *dialect, *chat;
    int max_tokens;
    double temperature;
    uint64_t seed;
    const char *display, *view;
    bool think, no_think, cursor, screen, json;
};

static const struct option_spec options[] = {
    MODEL_OPTIONS(struct settings),
    ENDPOINT_OPTIONS(struct settings),
    DIALECT_OPTION(struct settings),
    {"chat", 'c', OPTION_TEXT, offsetof(struct settings, chat), "FILE", 0, 4096, NULL,
     "continue this conversation (JSON) instead of asking a question", NULL},
    {"think", 0, OPTION_FLAG, offsetof(struct settings, think),
     .help = "with --chat: let the model think first (without it, its chat template decides)"},
    {"no-think", 0, OPTION_FLAG, offsetof(struct settings, no_think),
     .help = "with --chat: let the model answer without thinking first"},
    {"max-tokens", 0, OPTION_INT, offsetof(struct settings, max_tokens), "N", 1, 100000, "512",
     "maximum length of the answer in tokens", NULL},
    {"temperature", 't', OPTION_NUMBER, offsetof(struct settings, temperature), "T", 0, 10, "0",
     "sampling temperature, 0 for greedy", NULL},
    {"seed", 0, OPTION_SEED, offsetof(struct settings, seed), "N", 0, 0, "1", "random seed", NULL},
    {"screen", 'S', OPTION_FLAG, offsetof(struct settings, screen),
     .help = "add a screenshot of the display as the last image"},
    SCREEN_OPTIONS(struct settings),
    {"json", 'j', OPTION_FLAG, offsetof(struct settings, json),
     .help = "print one JSON object on stdout, with every token", .group = "output"},
    {0},
};

const struct command ask_command = {
    "ask",
    "QUESTION [IMAGE...]",
    "answer a question about images",
    "Images are PNG files and follow the question, in order; --image FILE may be written before each of "
    "them, and --screen adds a screenshot. The embedded model only answers questions about an image; other "
    "models also answer without one. A conversation is {\"messages\": [...], \"tools\": [...]} with the "
    "roles system, user, assistant and tool; images are parts of a user's content, written as {\"type\": "
    "\"image\", \"image\": \"FILE\"}.",
    "holorun ask --screen \"Is there a Save button?\"\n"
    "holorun ask \"Read the line that begins with Total\" screen.png\n"
    "holorun ask --json \"Which number is in the line with Total?\" --image a.png\n"
    "holorun ask --chat conversation.json\n",
    options,
    cmd_ask};

/* Reduces "--image FILE", which may be repeated and therefore cannot be in the option table, to FILE.
 * Returns the new argc. */
static int drop_image_words(int argc, char **argv)
{
    int n = 0;
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--image") && i + 1 < argc)
            continue;
        argv[n++] = strncmp(argv[i], "--image=", 8) == 0 ? argv[i] + 8 : argv[i];
    }
    return n;
}

/* Returns whether a word is the file name of an image, including formats that are rejected later: then it is
 * not the question. */
static bool is_picture(const char *name)
{
    static const char *const kinds[] = {".png",  ".jpg", ".jpeg", ".gif",  ".webp", ".bmp",
                                        ".tiff", ".ppm", ".avif", ".heic", ".svg"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcasecmp(dot, kinds[i]))
            return true;
    return false;
}

static int continue_chat(struct vqa *l, const struct settings *s, struct err *e)
{
    struct sampling sampling = {(float)s->temperature, l->dialect->top_p, s->max_tokens};
    struct conversation v;
    int rc = conversation_read(&v, s->chat, e);
    v.chat.place = l->dialect->image_inline ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE;
    v.chat.think = s->think ? CHAT_THINK_ON : s->no_think ? CHAT_THINK_OFF : CHAT_THINK_DEFAULT;
    if (rc == 0)
        rc = vqa_converse(l, &v.chat, &sampling, e);
    conversation_free(&v);
    return rc;
}

static int ask(struct vqa *l, const struct settings *s, const char *question, const struct image *images,
               int n, struct err *e)
{
    struct sampling sampling = {(float)s->temperature, l->dialect->top_p, s->max_tokens};
    struct buf text;
    int rc = 0;
    if (!n && (l->dialect->screen_w || l->dialect->coords == COORD_NATIVE))
        return err_set(e, ERR_USAGE,
                       "this model needs an image: give a PNG file after the question, or --screen");
    buf_init(&text, 1 << 20);
    if (l->dialect->ask && *l->dialect->ask)
        rc = dialect_fill(l->dialect->ask, (const char *const[]){"question", question, NULL}, &text, e);
    else
        buf_puts(&text, question);
    if (rc == 0)
        rc = vqa_ask(l, text.data, images, n, GOAL_TEXT, &sampling, e);
    buf_free(&text);
    return rc;
}

/* Corrects an answer about one image with the model's assist.  *held: the corrected answer, owned by the
 * caller, or NULL.  Returns -1 with e. */
static int correct_answer(struct vqa *l, const char *question, const struct image *images, int n, char **held,
                          struct err *e)
{
    struct assist *assist;
    size_t len = l->reply.text.len;
    while (len && strchr(" \t\r\n", l->reply.text.data[len - 1]))
        len--;
    *held = NULL;
    if (n != 1 || !len)
        return 0;
    if (pocket_assist_open(&assist, l->engine, l->dialect, screen_stop_flag(NULL), e))
        return -1;
    autofree char *said = xasprintf("%.*s", (int)len, l->reply.text.data);
    int rc = ASSIST(assist, answer) ? assist->ops->answer(assist, images, question, said, held, e) : 0;
    assist_free(assist);
    return rc;
}

/* Returns -1 with e for an empty answer; warns if the answer was truncated. */
static int check_answer(const struct vqa *l, const struct settings *s, struct err *e)
{
    if (!l->reply.text.data || answer_is_blank(l->reply.text.data))
        return err_set(e, ERR_UNSURE, "the model returned an empty answer");
    if (l->reply.finish == FINISH_LENGTH)
        warn("the answer was cut off after %d tokens; raise --max-tokens", s->max_tokens);
    return 0;
}

static void print_json(const struct vqa *l, const char *held)
{
    static const char *const finish[] = {"stop", "length", "grammar", "cancelled"};
    const struct generated *r = &l->reply;
    json_t *all = json_object(), *tokens = json_array(),
           *said = json_clean_stringn(r->text.data, r->text.len);
    json_set_text(all, "status", "answered");
    json_object_set_new(all, "answer", held ? json_clean_string(held) : json_incref(said));
    if (held)
        json_object_set(all, "said", said);
    json_decref(said);
    json_set_text(all, "finish", finish[r->finish]);
    json_set_rounded(all, "ms", r->ms, 1);
    for (int i = 0; i < r->n && r->choices; i++) { /* the choices of an endpoint are not known */
        const struct token_choice *c = &r->choices[i];
        size_t len;
        const char *bytes = tokenizer_bytes(engine_tokenizer(l->engine), c->id, &len);
        json_t *one = json_pack("{s:i, s:o}", "id", (int)c->id, "text", json_clean_stringn(bytes, len));
        if (c->forced)
            json_object_set_new(one, "forced", json_true());
        else
            json_set_rounded(one, "logprob", (double)c->logprob, 5);
        json_array_append_new(tokens, one);
    }
    json_object_set_new(all, "tokens", tokens);
    options_print_json(all, JSON_ROUNDED);
}

/* Captures the display.  view: that of the dialect, used unless the settings name one.  Returns -1 with e. */
static int take_screenshot(const struct settings *s, const char *view, struct image *out, struct err *e)
{
    const struct screen_options o = {
        .display = s->display, .view = s->view ? s->view : view, .cursor = s->cursor};
    displays_authorize(s->display);
    struct screen *x = screen_open(&o, e);
    int rc = x ? screen_capture(x, out, e) : -1;
    screen_close(x);
    return rc;
}

int cmd_ask(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    argc = drop_image_words(argc, argv);
    int n = options_parse(&ask_command, &s, argc, argv, &e);
    const char *question = NULL, *files[MAX_IMAGES];
    int nfiles = 0;
    for (int i = 0; i < n; i++) {
        if (!is_picture(argv[i]) && !question)
            question = argv[i];
        else if (question && !is_picture(argv[i]) && access(argv[i], F_OK))
            n = err_set(&e, ERR_USAGE, "'%s' is not an image file; put the question in quotes", argv[i]);
        else if (nfiles < MAX_IMAGES)
            files[nfiles++] = argv[i];
        else
            n = err_set(&e, ERR_USAGE, "more than %d images", MAX_IMAGES);
    }
    if (n >= 0 && s.screen && nfiles == MAX_IMAGES)
        n = err_set(&e, ERR_USAGE, "more than %d images", MAX_IMAGES);
    if (n >= 0 && s.chat && (question || nfiles || s.screen))
        n = err_set(&e, ERR_USAGE, "give a conversation or a question, not both");
    if (n >= 0 && !s.chat && (!question || !*question))
        n = err_set(&e, ERR_USAGE, "no question given: put it in quotes, followed by images (PNG)");
    if (n < 0)
        return options_refuse(&ask_command, &e);
    screen_install_signals();
    struct vqa l = {0};
    struct image images[MAX_IMAGES] = {{0}};
    autofree char *held = NULL;
    struct engine_options model = MODEL_ENGINE(s);
    int rc = 0;
    for (int i = 0; i < nfiles && rc == 0; i++)
        rc = image_read_png(&images[i], files[i], &e);
    const struct endpoint_options at = ENDPOINT_AT(s);
    if (rc == 0 && (nfiles || s.screen) && !ENDPOINT_GIVEN(s))
        rc = vqa_check_vision(&model, &e);
    if (rc == 0)
        rc = ENDPOINT_GIVEN(s) ? vqa_open_remote(&l, &at, s.dialect, s.seed, &e)
                               : vqa_open(&l, s.dialect, &model, s.seed, &e);
    if (rc == 0 && s.screen)
        rc = take_screenshot(&s, l.dialect->view, &images[nfiles++], &e);
    if (rc == 0)
        rc = s.chat ? continue_chat(&l, &s, &e) : ask(&l, &s, question, images, nfiles, &e);
    if (rc == 0)
        rc = check_answer(&l, &s, &e);
    if (rc == 0 && !s.chat)
        rc = correct_answer(&l, question, images, nfiles, &held, &e);
    if (rc == 0 && s.json)
        print_json(&l, held);
    else if (rc == 0 && held)
        utf8_print_result(stdout, held, strlen(held));
    else if (rc == 0)
        utf8_print_result(stdout, l.reply.text.data, l.reply.text.len);
    vqa_close(&l);
    for (int i = 0; i < nfiles; i++)
        image_free(&images[i]);
    return rc ? options_failed(&e) : 0;
}
