/* t_text_model.c - tests of a text model without a vision tower in the program and in the server: commands
 * that need images refuse it in one line before they open a display, the others work. */
#include "check.h"
#include "program.h"
#include "served.h"
#include "tiny_qwen.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Qwen2 with the tokenizer of the golden data, which has Qwen's special tokens. */
static const char config[] =
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\",\"hidden_size\":40,"
    "\"intermediate_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
    "\"vocab_size\":288,\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,"
    "\"max_position_embeddings\":4096,\"use_sliding_window\":false,\"sliding_window\":4096,"
    "\"eos_token_id\":256,\"tie_word_embeddings\":true}";

static void add(struct tiny *t, int layer, const char *part, double mean, const int64_t *shape)
{
    char name[96];
    snprintf(name, sizeof name, "model.layers.%d.%s", layer, part);
    tiny_add(t, name, mean, 0.2, shape);
}

static void tiny_text(struct tiny *t)
{
    tiny_init(t, check_seed());
    tiny_clear(t);
    t->config = xstrdup(config);
    size_t len;
    assert_int_equal(
        file_read("tests/golden/qwen/whole_vl25/tokenizer.json", 1 << 20, &t->tokenizer, &len, NULL), 0);
    tiny_add(t, "model.embed_tokens.weight", 0, 0.5, TINY_SHAPE(288, 40));
    tiny_add(t, "model.norm.weight", 1, 0.2, TINY_SHAPE(40));
    for (int i = 0; i < 2; i++) {
        add(t, i, "input_layernorm.weight", 1, TINY_SHAPE(40));
        add(t, i, "post_attention_layernorm.weight", 1, TINY_SHAPE(40));
        add(t, i, "self_attn.q_proj.weight", 0, TINY_SHAPE(40, 40));
        add(t, i, "self_attn.k_proj.weight", 0, TINY_SHAPE(20, 40));
        add(t, i, "self_attn.v_proj.weight", 0, TINY_SHAPE(20, 40));
        add(t, i, "self_attn.o_proj.weight", 0, TINY_SHAPE(40, 40));
        add(t, i, "self_attn.q_proj.bias", 0, TINY_SHAPE(40));
        add(t, i, "self_attn.k_proj.bias", 0, TINY_SHAPE(20));
        add(t, i, "self_attn.v_proj.bias", 0, TINY_SHAPE(20));
        add(t, i, "mlp.gate_proj.weight", 0, TINY_SHAPE(48, 40));
        add(t, i, "mlp.up_proj.weight", 0, TINY_SHAPE(48, 40));
        add(t, i, "mlp.down_proj.weight", 0, TINY_SHAPE(40, 48));
    }
    tiny_write(t);
}

static struct tiny text;
static struct xvfb none; /* a directory for the program's output, without an X server */

static int setup(void **state)
{
    tiny_text(&text);
    xvfb_folder(&none);
    return 0;
}

static int teardown(void **state)
{
    xvfb_stop(&none);
    tiny_free(&text);
    return 0;
}

#define CANNOT "is a text model without a vision encoder and cannot process images"

/* DISPLAY cannot be opened; its name must not be in the message, because it was not used. */
static void t_commands(void **state)
{
    static const char picture[] = "assets/pictures/report.png";
    char *suite =
        xvfb_put(&none, "suite.yaml",
                 "suite:\n  name: one\n  display: xvfb:640x480\ntests:\n  - id: a\n    task: Press Save\n");
    char *items = xvfb_put(&none, "items.jsonl", "");
    const char *const commands[][8] = {
        {"run", "Press Save", "--display", ":987"},
        {"run", "Press Save", "--display", ":987", "--dry-run"},
        {"run", "Press Save", "--on", "desk"},
        {"step", "Press Save", "--display", ":987"},
        {"qa", suite},
        {"ask", "Describe it.", picture},
        {"ask", "Describe it.", "--screen", "--display", ":987"},
        {"ground", picture, "Save"},
        {"eval", items},
        {"calibrate", NULL},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        OUTCOME(o);
        const char *words[12] = {0};
        int n = 0;
        for (; n < 8 && commands[i][n]; n++)
            words[n] = commands[i][n];
        words[n++] = "--model";
        words[n] = text.dir;
        program_run(&none, &o, words);
        if (!strcmp(words[0], "qa")) { /* also prints the name of its report */
            assert_int_equal(o.code, ERR_USAGE);
            assert_non_null(strstr(o.err, CANNOT));
            continue;
        }
        ONE_LINE(&o, ERR_USAGE, text.dir, CANNOT, "with ask, serve or bench and text only", "holorun models");
        if (strstr(o.err, ":987") || *o.out)
            fail_msg("%s: '%s' '%s'", words[0], o.err, o.out);
    }
    free(suite);
    free(items);
}

static void t_answers(void **state)
{
    OUTCOME(o);
    program_run(
        &none, &o,
        WORDS("ask", "--model", text.dir, "--json", "--max-tokens", "8", "--temperature", "0", "Hello"));
    if (o.code && o.code != ERR_UNSURE) /* a random model may give an empty reply */
        fail_msg("%d: %s", o.code, o.err);
    program_run(&none, &o, WORDS("inspect", text.dir));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "vision                 none"));
}

/* ---- the server ------------------------------------------------------------------------------------- */

static void use_text(struct service_options *o, struct server_options *s)
{
    o->model.dir = s->model.dir = text.dir;
}

static json_t *request(const char *content, bool stream)
{
    json_error_t why;
    json_t *c = json_loads(content, JSON_DECODE_ANY, &why);
    if (!c)
        fail_msg("%s", why.text);
    return json_pack("{s:s, s:i, s:b, s:[{s:s, s:o}]}", "model", "tiny", "max_tokens", 4, "stream", stream,
                     "messages", "role", "user", "content", c);
}

static void t_serve(void **state)
{
    static const char picture[] =
        "[{\"type\":\"text\",\"text\":\"Describe it.\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/"
        "png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC\"}"
        "}]";
    struct served v;
    served_open(&v, use_text);
    struct said r = served_chat(&v, request("\"Hello\"", false));
    assert_int_equal(r.status, 200);
    said_free(&r);
    for (int stream = 0; stream < 2; stream++) {
        r = served_chat(&v, request(picture, stream));
        if (r.status != 400 || !strstr(r.text, CANNOT))
            fail_msg("%d: %s", r.status, r.text);
        said_free(&r);
    }
    r = served_chat(&v, request("\"And now?\"", false)); /* the refused request has no effect */
    assert_int_equal(r.status, 200);
    said_free(&r);
    served_close(&v);
}

static const struct CMUnitTest tests[] = {
    CLAIM_WITH("commands that need images refuse a text model in one line, before they open a display",
               t_commands, setup, teardown),
    CLAIM_WITH("questions without images are answered, and inspect reports the missing tower", t_answers,
               setup, teardown),
    CLAIM_WITH("the server answers text, and a request with an image gets status 400 and the reason", t_serve,
               setup, teardown),
};

CHECK_MAIN()
