/* tiny_dirs.c - see tiny_dirs.h. */
#include "tiny_dirs.h"

#include "check.h"

#include <unistd.h>

char *published_template(const char *family)
{
    const char *dir = getenv("HOLORUN_TEMPLATES");
    char *path = xasprintf("%s/%s.jinja", dir ? dir : "build/templates", family), *text = NULL;
    size_t len;
    if (file_read(path, 1 << 20, &text, &len, NULL))
        text = NULL;
    free(path);
    return text;
}

enum tiny_dir_kind tiny_dir_kind_of(const char *family)
{
    return !strncmp(family, "nemotron", 8) ? TINY_NEMOTRON3
           : !strcmp(family, "qwen3_vl")   ? TINY_QWEN3_VL
                                           : TINY_QWEN35;
}

static void write_file(const char *dir, const char *name, const char *text, size_t len)
{
    char *path = xasprintf("%s/%s", dir, name);
    assert_int_equal(file_write(path, text, len, NULL), 0);
    free(path);
}

static void copy_file(const struct golden *g, const char *name)
{
    char *text, *from = xasprintf("%s/%s", g->dir, name);
    size_t len;
    assert_int_equal(file_read(from, 1 << 20, &text, &len, NULL), 0);
    write_file(g->checkpoint, name, text, len);
    free(text);
    free(from);
}

static void open_nemotron(struct tiny *t)
{
    static const char *const marks[] = {"<|im_start|>",    "<|im_end|>",      "<think>",
                                        "</think>",        "<tool_call>",     "</tool_call>",
                                        "<tool_response>", "</tool_response>"};
    tiny_init(t, check_seed());
    for (int i = 0; i < 8; i++) {
        char old[32];
        snprintf(old, sizeof old, "<SPECIAL_%d>", 3 + i);
        tiny_edit(&t->tokenizer, old, marks[i]);
    }
    tiny_write(t);
}

void tiny_dir_open(struct tiny_dir *d, enum tiny_dir_kind kind, const char *template)
{
    *d = (struct tiny_dir){.kind = kind};
    if (kind == TINY_NEMOTRON3) {
        open_nemotron(&d->tiny);
        d->dir = d->tiny.dir;
    } else {
        golden_open(&d->golden, kind == TINY_QWEN35 ? "qwen/whole" : "qwen/whole_vl3");
        golden_checkpoint(&d->golden);
        copy_file(&d->golden, "tokenizer.json");
        copy_file(&d->golden, "preprocessor_config.json");
        d->dir = d->golden.checkpoint;
    }
    write_file(d->dir, "chat_template.jinja", template, strlen(template));
}

static void remove_file(const char *dir, const char *name)
{
    char *path = xasprintf("%s/%s", dir, name);
    unlink(path);
    free(path);
}

void tiny_dir_close(struct tiny_dir *d)
{
    remove_file(d->dir, "chat_template.jinja");
    if (d->kind == TINY_NEMOTRON3) {
        tiny_free(&d->tiny);
        return;
    }
    remove_file(d->dir, "tokenizer.json");
    remove_file(d->dir, "preprocessor_config.json");
    golden_close(&d->golden);
}
