/* fuzz_gguf.c - any bytes as a GGUF file; what is accepted must be readable to its last byte. */
#include "base/gguf.h"
#include "checkpoint/gguf_model.h"
#include "model/config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Keys that readers ask for, and some that seeds have. */
static unsigned read_values(const struct gguf_file *f)
{
    static const char *const keys[] = {"general.architecture",  "general.alignment",
                                       "tokenizer.ggml.tokens", "tokenizer.ggml.token_type",
                                       "tokenizer.ggml.merges", "qwen35.rope.dimension_sections"};
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

/* The file as a model, and as a model with itself as its tower. */
static void read_config(const struct gguf_file *f)
{
    for (int eyes = 0; eyes < 2; eyes++) {
        struct model_config c;
        char *config, *preprocessor;
        if (gguf_config(f, eyes ? f : NULL, &config, &preprocessor, NULL) == 0)
            config_parse(&c, &(struct config_text){.config = config, .preprocessor = preprocessor}, NULL);
        free(config);
        free(preprocessor);
    }
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
        if (gguf_find(f, t->name) != t)
            __builtin_trap();
    }
    gguf_close(f);
    return sum == 0x7fffffff ? -1 : 0; /* the sum is used */
}
