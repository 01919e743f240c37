/* tiny_dirs.h - small random models as directories with a published chat template: Qwen3.5 and Qwen3-VL
 * (golden.h), Nemotron 3 (tiny_model.h).
 */
#pragma once

#include "golden.h"
#include "tiny_model.h"

enum tiny_dir_kind { TINY_QWEN35, TINY_QWEN3_VL, TINY_NEMOTRON3 };

struct tiny_dir {
    enum tiny_dir_kind kind;
    struct golden golden;
    struct tiny tiny;
    const char *dir;
};

/* Returns a published template from build/templates or $HOLORUN_TEMPLATES; NULL: not found. The caller frees
 * it. */
char *published_template(const char *family);

/* Returns the kind of model of a published template. */
enum tiny_dir_kind tiny_dir_kind_of(const char *family);

/* Writes a model with this template. */
void tiny_dir_open(struct tiny_dir *d, enum tiny_dir_kind kind, const char *template);
void tiny_dir_close(struct tiny_dir *d);
