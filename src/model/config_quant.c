/* config_quant.c - how a checkpoint says that it is quantised: "quantization_config" of config.json, or a file of its
 * own, hf_quant_config.json, with the same under "quantization".
 *
 * Which tensors are small is told by the tensors themselves (weights_quantized.c); what is read here only serves to
 * refuse what would be misunderstood, and to say what it is.
 */
#include "model/config_impl.h"

#include <stdio.h>
#include <string.h>

static void read_algorithm(struct reader *r, struct model_config *c)
{
    static const char *const known[] = {"FP8", "NVFP4", "W4A16_NVFP4", "MIXED_PRECISION"};
    const json_t *v = reader_get(r, "quant_algo");
    const char *name = json_string_value(v);
    if (!v || (name && (!strcasecmp(name, "none") || !*name)))
        return;
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i])) {
            snprintf(c->quant, sizeof c->quant, "%s", name);
            return;
        }
    reader_refuse(r, "'quant_algo' is '%s'; only 'FP8', 'NVFP4' and mixtures of them are implemented",
                  name ? name : "no text");
}

/* Of compressed-tensors the layout of FP8 is the same, with a scale for each row. */
static void read_method(struct reader *r, struct model_config *c)
{
    const json_t *v = reader_get(r, "quant_method");
    const char *name = json_string_value(v);
    if (name && !strcmp(name, "compressed-tensors")) {
        reader_only_text(r, "format", "float-quantized");
        snprintf(c->quant, sizeof c->quant, "FP8");
    } else if (v && (!name || strncmp(name, "modelopt", 8) != 0)) {
        reader_refuse(r, "'quant_method' is '%s'; only 'modelopt' and 'compressed-tensors' are implemented",
                      name ? name : "no text");
    }
}

static void read_part(struct reader *r, const char *key, struct model_config *c)
{
    struct reader inside = reader_inside(r, key);
    if (!inside.object)
        return;
    read_method(&inside, c);
    read_algorithm(&inside, c);
    int group = reader_int(&inside, "group_size", 1, 1 << 16, 16);
    if (strstr(c->quant, "NVFP4") && group != 16)
        reader_refuse(&inside, "'group_size' is %d; NVFP4 has groups of 16", group);
}

void config_read_quant(struct reader *config, struct reader *lm, struct reader *file, struct model_config *c)
{
    read_part(config, "quantization_config", c);
    if (lm->object)
        read_part(lm, "quantization_config", c);
    if (file->object)
        read_part(file, "quantization", c);
}
