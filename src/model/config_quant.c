/* config_quant.c - reads the quantization of a checkpoint: "quantization_config" in config.json, or
 * "quantization" in hf_quant_config.json.
 *
 * The tensors themselves show which of them are quantized (weights_quantized.c). These keys serve to name
 * the format and to reject formats that would be misread. */
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

/* Checks that blocks of 128 x 128 values share a scale. */
static void read_blocks(struct reader *r)
{
    const json_t *size = reader_get(r, "weight_block_size");
    reader_only_text(r, "fmt", "e4m3");
    for (size_t i = 0; i < 2; i++)
        if (json_array_size(size) != 2 || reader_number(json_array_get(size, i)) != 128)
            reader_refuse(r, "'weight_block_size' is not [128, 128]; nothing else is implemented");
}

/* Reads the GPTQ format. Modules listed in "dynamic" may differ, which their tensors show. */
static void read_gptq(struct reader *r, struct model_config *c)
{
    const json_t *format = reader_get(r, "checkpoint_format");
    const char *name = format ? json_string_value(format) : "gptq";
    int bits = reader_int(r, "bits", 1, 32, -1), group = reader_int(r, "group_size", -1, 1 << 16, -1);
    if (!name || (strcmp(name, "gptq") != 0 && strcmp(name, "gptq_v2") != 0))
        reader_refuse(r, "'checkpoint_format' is '%s'; only 'gptq' and 'gptq_v2' are implemented",
                      name ? name : "no text");
    if (bits != 4 || group != 128)
        reader_refuse(r, "GPTQ with %d bits in groups of %d; only 4 bits in groups of 128 are implemented",
                      bits, group);
    snprintf(c->quant, sizeof c->quant, "GPTQ");
    c->gptq_least = name && !strcmp(name, "gptq");
}

/* Reads the method. compressed-tensors stores FP8 like ModelOpt, with one scale per row. */
static void read_method(struct reader *r, struct model_config *c)
{
    const json_t *v = reader_get(r, "quant_method");
    const char *name = json_string_value(v), *format = json_string_value(reader_get(r, "format"));
    bool qwen = family_is_qwen(c->family);
    if (name && !strcmp(name, "compressed-tensors") && format && !strcmp(format, "nvfp4-pack-quantized")) {
        snprintf(c->quant, sizeof c->quant, "NVFP4");
    } else if (name && !strcmp(name, "compressed-tensors")) {
        reader_only_text(r, "format", "float-quantized");
        snprintf(c->quant, sizeof c->quant, "FP8");
    } else if (qwen && name && !strcmp(name, "fp8")) {
        read_blocks(r);
        snprintf(c->quant, sizeof c->quant, "FP8");
    } else if (qwen && name && !strcmp(name, "gptq")) {
        read_gptq(r, c);
    } else if (v && (!name || strncmp(name, "modelopt", 8) != 0)) {
        reader_refuse(r, "'quant_method' is '%s'; only %s are implemented", name ? name : "no text",
                      qwen ? "'modelopt', 'compressed-tensors', 'fp8' and 'gptq'"
                           : "'modelopt' and 'compressed-tensors'");
    }
}

static void read_part(struct reader *r, const char *key, struct model_config *c)
{
    struct reader inside = reader_inside(r, key);
    if (!inside.object)
        return;
    read_method(&inside, c);
    read_algorithm(&inside, c);
    int group = reader_int(&inside, "group_size", -1, 1 << 16, 16);
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
