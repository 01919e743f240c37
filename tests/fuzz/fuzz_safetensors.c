/* fuzz_safetensors.c - any bytes as a weight file; an accepted file must be readable to its last byte. */
#include "checkpoint/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors *s = safetensors_parse(data, size, NULL);
    unsigned sum = 0;
    for (int i = 0; s && i < safetensors_count(s); i++) {
        const struct st_tensor *t = safetensors_at(s, i);
        char shape[64];
        safetensors_shape_text(t, shape, sizeof shape);
        for (size_t k = 0; k < t->bytes; k++)
            sum += ((const uint8_t *)t->data)[k];
        if (safetensors_find(s, t->name) != t)
            __builtin_trap();
    }
    safetensors_close(s);
    return sum == 0x7fffffff ? -1 : 0; /* prevents optimizing the reads away */
}
