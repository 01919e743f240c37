/* fuzz_template.c - any text as a chat template, of which the sentences around tools are read. */
#include "text/chat_layout.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct buf front, behind;
    memcpy(text, data, size);
    text[size] = 0;
    buf_init(&front, 1 << 12);
    buf_init(&behind, 1 << 12);
    if (template_read_tools(text, &front, &behind) && (!front.len || !behind.len))
        __builtin_trap();
    buf_clear(&front);
    buf_clear(&behind);
    if (template_read_qwen_tools(text, &front, &behind) && (!front.len || !behind.len))
        __builtin_trap();
    buf_free(&front);
    buf_free(&behind);
    free(text);
    return 0;
}
