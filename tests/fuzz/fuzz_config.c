/* fuzz_config.c - any text as config.json, cut at zero bytes into the three files of a model. */
#include "model/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 3);
    memcpy(text, data, size);
    memset(text + size, 0, 3);
    struct config_text t = {.config = text};
    t.preprocessor = t.config + strlen(t.config) + 1;
    t.generation = t.preprocessor <= text + size ? t.preprocessor + strlen(t.preprocessor) + 1 : NULL;
    if (t.preprocessor > text + size || !*t.preprocessor)
        t.preprocessor = NULL;
    if (t.generation && (t.generation > text + size || !*t.generation))
        t.generation = NULL;
    struct model_config c;
    if (config_parse(&c, &t, NULL) == 0 &&
        (c.lm.layers < 1 || c.lm.hidden < 1 || config_proj_rows(&c.lm) < 0))
        __builtin_trap();
    free(text);
    return 0;
}
