/* gguf_tensors.c - tensors of GGUF files under their published names; see gguf_model.h. */
#include "checkpoint/gguf_model.h"

#include "base/buf.h"
#include "checkpoint/safetensors_impl.h"
#include "ops/gguf_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LM  "model.language_model."
#define VIS "model.visual."

/* ---- names --------------------------------------------------------------------------------------------- */

struct name {
    const char *file, *published;
    enum { ANY, MULTIMODAL, TEXT } of; /* model kind, for names that the two kinds map differently */
};

static const struct name ends[] = {
    {"token_embd.weight", LM "embed_tokens.weight"},
    {"output_norm.weight", LM "norm.weight"},
    {"output.weight", "lm_head.weight"},
    {"v.patch_embd.weight", VIS "patch_embed.proj.weight"},
    {"v.patch_embd.weight.1", VIS "patch_embed.proj.weight.1"},
    {"v.patch_embd.bias", VIS "patch_embed.proj.bias"},
    {"v.position_embd.weight", VIS "pos_embed.weight"},
    {"v.post_ln.weight", VIS "merger.norm.weight"},
    {"v.post_ln.bias", VIS "merger.norm.bias"},
    {"mm.0.weight", VIS "merger.linear_fc1.weight"},
    {"mm.0.bias", VIS "merger.linear_fc1.bias"},
    {"mm.2.weight", VIS "merger.linear_fc2.weight"},
    {"mm.2.bias", VIS "merger.linear_fc2.bias"},
};

static const struct name of_layer[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight", MULTIMODAL},
    {"ffn_norm.weight", "post_attention_layernorm.weight", TEXT},
    {"attn_qkv.weight", "linear_attn.in_proj_qkv.weight"},
    {"attn_gate.weight", "linear_attn.in_proj_z.weight"},
    {"ssm_alpha.weight", "linear_attn.in_proj_a.weight"},
    {"ssm_beta.weight", "linear_attn.in_proj_b.weight"},
    {"ssm_conv1d.weight", "linear_attn.conv1d.weight"},
    {"ssm_dt.bias", "linear_attn.dt_bias"},
    {"ssm_a", "linear_attn.A_log"},
    {"ssm_norm.weight", "linear_attn.norm.weight"},
    {"ssm_out.weight", "linear_attn.out_proj.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"ffn_gate_inp.weight", "mlp.gate.weight"},
    {"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight"},
    {"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight"},
    {"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight"},
    {"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight"},
    {"ffn_gate_exps.weight", "mlp.experts.gate_proj"},
    {"ffn_up_exps.weight", "mlp.experts.up_proj"},
    {"ffn_down_exps.weight", "mlp.experts.down_proj"},
    {"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"},
};

static const struct name of_block[] = {
    {"ln1.weight", "norm1.weight"},
    {"ln1.bias", "norm1.bias"},
    {"ln2.weight", "norm2.weight"},
    {"ln2.bias", "norm2.bias"},
    {"attn_qkv.weight", "attn.qkv.weight"},
    {"attn_qkv.bias", "attn.qkv.bias"},
    {"attn_out.weight", "attn.proj.weight"},
    {"attn_out.bias", "attn.proj.bias"},
    {"ffn_up.weight", "mlp.linear_fc1.weight"},
    {"ffn_up.bias", "mlp.linear_fc1.bias"},
    {"ffn_down.weight", "mlp.linear_fc2.weight"},
    {"ffn_down.bias", "mlp.linear_fc2.bias"},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* The name tables, with the text before the layer number: "blk." in the file, "layers." in the published
 * name. */
static const struct {
    const struct name *names;
    size_t n;
    const char *file, *published; /* NULL: the names have no layer number */
} tables[] = {
    {ends, COUNT(ends), NULL, NULL},
    {of_layer, COUNT(of_layer), "blk.", LM "layers."},
    {of_block, COUNT(of_block), "v.blk.", VIS "blocks."},
};

/* Splits "blk.12.rest", where front is "blk.": sets *number and returns the rest. NULL if the name does
 * not have this form. */
static const char *after_number(const char *name, const char *front, long *number)
{
    size_t n = strlen(front);
    char *end;
    if (strncmp(name, front, n) != 0 || name[n] < '0' || name[n] > '9')
        return NULL;
    *number = strtol(name + n, &end, 10);
    return *end == '.' ? end + 1 : NULL;
}

/* Writes the other form of a name to out. from_file: the name is a GGUF file's (first column of the
 * tables), otherwise a published one (second column). text: whether it belongs to a text model. Returns
 * false if the tables do not contain the name. */
static bool translate(const char *name, bool from_file, bool text, char out[256])
{
    for (size_t t = 0; t < COUNT(tables); t++) {
        const char *from = from_file ? tables[t].file : tables[t].published;
        const char *to = from_file ? tables[t].published : tables[t].file;
        long number = 0;
        const char *rest = from ? after_number(name, from, &number) : name;
        for (size_t i = 0; rest && i < tables[t].n; i++) {
            const struct name *k = &tables[t].names[i];
            if (strcmp(rest, from_file ? k->file : k->published) != 0 || k->of == (text ? MULTIMODAL : TEXT))
                continue;
            if (to)
                snprintf(out, 256, "%s%ld.%s", to, number, from_file ? k->published : k->file);
            else
                snprintf(out, 256, "%s", from_file ? k->published : k->file);
            return true;
        }
    }
    return false;
}

/* Converts X.scale and X.input_scale, which are next to X.weight, which llama.cpp uses for NVFP4. */
static bool translate_scale(const char *name, bool text, char out[256])
{
    static const char *const scales[] = {".input_scale", ".scale"};
    char weight[256], published[256];
    for (int i = 0; i < 2; i++) {
        if (!text_ends(name, scales[i]) || strlen(name) > 200)
            continue;
        snprintf(weight, sizeof weight, "%.*s.weight", (int)(strlen(name) - strlen(scales[i])), name);
        if (!translate(weight, true, text, published))
            return false;
        size_t n = strlen(published) - (text_ends(published, ".weight") ? strlen(".weight") : 0);
        snprintf(out, 256, "%.*s%s", (int)(n < 200 ? n : 200), published, scales[i]);
        return true;
    }
    return false;
}

void gguf_published(const char *name, bool text, int layers, char out[256])
{
    long number = 0;
    if (after_number(name, "blk.", &number) && number >= layers) /* a multi-token prediction layer */
        snprintf(out, 256, "mtp.%s", name);
    else if (!translate(name, true, text, out) && !translate_scale(name, text, out))
        snprintf(out, 256, "%s", name);
}

void gguf_spelling(const char *published, bool text, char out[256])
{
    if (!translate(published, false, text, out))
        snprintf(out, 256, "%s", published);
}

/* ---- tensors ------------------------------------------------------------------------------------------- */

/* Sets the published shape. It differs for two kinds: convolution weights have a dimension of 1 in the
 * middle, and the gate of the shared expert is a single row. */
static void set_shape(struct st_tensor *t, const struct gguf_entry *from)
{
    t->dims = from->dims;
    memcpy(t->shape, from->shape, sizeof from->shape);
    if (t->dims == 2 && text_ends(t->name, "conv1d.weight")) {
        t->shape[2] = t->shape[1];
        t->shape[1] = 1;
        t->dims = 3;
    } else if (t->dims == 1 && text_ends(t->name, "shared_expert_gate.weight")) {
        t->shape[1] = t->shape[0];
        t->shape[0] = 1;
        t->dims = 2;
    }
}

static int add(struct safetensors *s, const struct gguf_file *f, const char *file,
               const struct gguf_entry *from, bool text, int layers, struct err *e)
{
    char name[256];
    bool f16 = from->type == GGML_F16, bf16 = from->type == GGML_BF16, coded = gguf_is_coded(from->type);
    gguf_published(from->name, text, layers, name);
    if (from->type != GGML_F32 && !f16 && !bf16 && !coded && strncmp(name, "mtp.", 4) != 0)
        return err_set(e, ERR_MODEL,
                       "%s: tensor '%s' is stored as %s, which is not supported; use another quantization of "
                       "this model",
                       gguf_name(f), from->name, ggml_type_name(from->type));
    struct st_tensor *t = safetensors_add(s);
    *t = (struct st_tensor){.name = xstrdup(name), .file = file, .data = from->data, .bytes = from->bytes};
    t->dtype = from->type == GGML_F32 ? DT_F32 : f16 ? DT_F16 : bf16 ? DT_BF16 : DT_U8;
    t->gguf = coded ? from->type : 0;
    set_shape(t, from);
    return 0;
}

/* Adds an open file to s, which then owns it. f is NULL if opening it failed; returns -1 then. */
static int take_file(struct safetensors *s, struct gguf_file *f)
{
    if (!f)
        return -1;
    s->gguf = xrealloc(s->gguf, (unsigned long)s->n_gguf + 1, sizeof *s->gguf);
    s->maps = xrealloc(s->maps, (unsigned long)s->n_gguf + 1, sizeof *s->maps);
    s->gguf[s->n_gguf] = f;
    s->files = xrealloc(s->files, (unsigned long)s->n_gguf + 1, sizeof *s->files);
    s->files[s->n_gguf] = xstrdup(gguf_name(f));
    s->maps[s->n_gguf].data = gguf_whole(f, &s->maps[s->n_gguf].len);
    s->shards = ++s->n_gguf;
    return 0;
}

static int open_files(struct safetensors *s, const char *place, struct err *e)
{
    struct err none = ERR_INIT;
    if (take_file(s, gguf_open_text(place, e)))
        return -1;
    int parts = gguf_parts(s->gguf[0]), tensors = gguf_count(s->gguf[0]);
    for (int i = 2; i <= parts; i++) {
        if (take_file(s, gguf_open_part(place, i, parts, e)))
            return -1;
        tensors += gguf_count(s->gguf[i - 1]);
    }
    double claimed = gguf_number_of(s->gguf[0], "split.tensors.count", tensors);
    if ((int)claimed != tensors)
        return err_set(e, ERR_MODEL, "%d parts contain %d tensors, but the first one claims %.0f", parts,
                       tensors, claimed);
    take_file(s, gguf_open_vision(place, &none)); /* the vision file is optional */
    return none.kind ? err_set(e, ERR_MODEL, "%s", none.text) : 0;
}

struct safetensors *safetensors_of_gguf(struct safetensors *s, const char *place, struct err *e)
{
    int rc = open_files(s, place, e), layers = rc == 0 ? gguf_layers(s->gguf[0]) : 0;
    bool text = rc == 0 && gguf_is_text_model(s->gguf[0]);
    for (int i = 0; i < s->n_gguf; i++)
        for (int k = 0; k < gguf_count(s->gguf[i]) && rc == 0; k++)
            rc = add(s, s->gguf[i], s->files[i], gguf_at(s->gguf[i], k), text, layers, e);
    if (rc == 0)
        rc = safetensors_sort(s, e);
    if (rc == 0)
        return s;
    safetensors_close(s);
    if (e)
        e->kind = ERR_MODEL;
    err_prefix(e, "model '%s'", place);
    return NULL;
}

bool safetensors_is_gguf(const struct safetensors *s)
{
    return s->n_gguf > 0;
}

const char *safetensors_spelling(const struct safetensors *s, const char *name)
{
    static _Thread_local char out[256];
    if (!name || !safetensors_is_gguf(s))
        return name;
    gguf_spelling(name, gguf_is_text_model(s->gguf[0]), out);
    return out;
}

const char *safetensors_type(const struct st_tensor *t)
{
    return t->gguf ? ggml_type_name(t->gguf) : dtype_name(t->dtype);
}
