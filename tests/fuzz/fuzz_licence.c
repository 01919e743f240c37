/* fuzz_licence.c - any bytes as each kind of file that may state a licence; the output is clean UTF-8. */
#include "checkpoint/licence.h"

#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"README.md", "a.safetensors", "a.gguf", "a.json", "LICENSE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char out[LICENCE_TEXT];
        bool stated = licence_stated(names[i], data, size, out);
        size_t n = strnlen(out, sizeof out);
        if (n == sizeof out || stated != (n > 0) || utf8_valid_prefix(out, n) != n ||
            strpbrk(out, "\n\t\r\033"))
            __builtin_trap();
    }
    return 0;
}
