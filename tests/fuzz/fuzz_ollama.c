/* fuzz_ollama.c - any bytes as a manifest of Ollama; no path leads out of the directory of blobs. */
#include "checkpoint/ollama.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    char *place = ollama_place("/nowhere", (const char *)data, size, "fuzz", &e);
    if (place && (strncmp(place, "/nowhere/blobs/sha256-", 22) != 0 || strstr(place, "..")))
        __builtin_trap();
    if (!place && !e.kind)
        __builtin_trap();
    free(place);
    return 0;
}
