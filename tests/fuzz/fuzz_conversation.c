/* fuzz_conversation.c - any bytes as a conversation: refused, or rendered. */
#include "chat_render.h"
#include "text/conversation.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct conversation v;
    if (conversation_parse(&v, (const char *)data, size, &e) == 0) {
        char *text = chat_render(&v.chat, CHAT_NEMOTRON_VL, &e);
        if (!text && !*e.text)
            bug("refused without a reason");
        free(text);
    } else if (!*e.text) {
        bug("refused without a reason");
    }
    conversation_free(&v);
    return 0;
}
