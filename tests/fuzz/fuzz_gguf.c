/* fuzz_gguf.c - any bytes as a GGUF file; every tensor of an accepted file must be readable to its last
 * byte, and its first row must be decodable and convertible to its stored format. */
#include "base/gguf.h"
#include "checkpoint/gguf_model.h"
#include "model/config.h"
#include "ops/gguf_rows.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Keys that the program reads, and some that the seeds contain. */
static unsigned read_values(const struct gguf_file *f)
{
    static const char *const keys[] = {"general.architecture",   "general.alignment",
                                       "tokenizer.ggml.tokens",  "tokenizer.ggml.token_type",
                                       "tokenizer.ggml.merges",  "qwen35.rope.dimension_sections",
                                       "qwen3.rope.scaling.type"};
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct gguf_value v;
        double x;
        const char *text;
        size_t len;
        if (!gguf_value(f, keys[i], &v))
            continue;
        for (struct gguf_value w = v; gguf_next_number(&w, &x);)
            sum += x > 0;
        while (gguf_next_text(&v, &text, &len))
            for (size_t k = 0; k < len; k++)
                sum += (unsigned char)text[k];
        free(gguf_text_of(f, keys[i]));
    }
    return sum;
}

/* Opens the file as a model, and as a model that is its own vision tower. */
static void read_config(const struct gguf_file *f)
{
    for (int vision = 0; vision < 2; vision++) {
        struct model_config c;
        char *config, *preprocessor;
        if (gguf_config(f, vision ? f : NULL, &config, &preprocessor, NULL) == 0)
            config_parse(&c, &(struct config_text){.config = config, .preprocessor = preprocessor}, NULL);
        free(config);
        free(preprocessor);
    }
}

static unsigned read_row(const struct gguf_entry *t)
{
    enum { MOST = 1 << 14 };
    static float numbers[MOST];
    static uint8_t codes[MOST];
    static uint16_t groups[MOST];
    int64_t cols = t->shape[t->dims - 1];
    if (!gguf_is_coded(t->type) || cols > MOST)
        return 0;
    size_t bytes = gguf_row_bytes(t->type, cols);
    uint8_t *row = malloc(bytes); /* of exact size, for the sanitizer */
    memcpy(row, t->data, bytes);
    struct tensor stored = {row, DT_U8, 1, (int64_t)bytes, (int64_t)bytes};
    struct quant_source s = {.rows = 1, .cols = cols, .stored = stored, .scale = 1, .gguf = t->type};
    struct quant_row out = {codes, groups, 0, numbers};
    unsigned finite = gguf_finite(t->type, row);
    gguf_row(t->type, row, cols, numbers);
    if (gguf_kept(t->type))
        quant_make_row(gguf_kept(t->type), &s, 0, &out);
    quant_make_row(QUANT_I4, &s, 0, &out);
    free(row);
    return finite + codes[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_file *f = gguf_parse("fuzz.gguf", data, size, NULL);
    unsigned sum = f ? read_values(f) : 0;
    if (f)
        read_config(f);
    for (int i = 0; f && i < gguf_count(f); i++) {
        const struct gguf_entry *t = gguf_at(f, i);
        for (size_t k = 0; k < t->bytes; k++)
            sum += t->data[k];
        sum += read_row(t);
        if (gguf_find(f, t->name) != t)
            __builtin_trap();
    }
    gguf_close(f);
    return sum == 0x7fffffff ? -1 : 0; /* prevents optimizing the reads away */
}
