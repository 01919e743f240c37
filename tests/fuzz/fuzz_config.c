/* fuzz_config.c - any text as config.json, split at zero bytes into the files of a model. */
#include "model/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { FILES = 4 };
    char *text = malloc(size + 1);
    const char *files[FILES] = {text};
    memcpy(text, data, size);
    text[size] = 0;
    for (int i = 1; i < FILES && files[i - 1]; i++) {
        const char *next = files[i - 1] + strlen(files[i - 1]) + 1;
        files[i] = next < text + size ? next : NULL;
    }
    struct config_text t = {.config = files[0], .generation = files[2], .processor = files[3]};
    t.preprocessor = files[1] && *files[1] ? files[1] : NULL; /* NULL: the last file is used instead */
    struct model_config c;
    if (config_parse(&c, &t, NULL) == 0 &&
        (c.lm.layers < 1 || c.lm.hidden < 1 || config_proj_rows(&c.lm) < 0))
        __builtin_trap();
    free(text);
    return 0;
}
