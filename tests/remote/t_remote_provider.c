/* t_remote_provider.c - tests services known by name: settings, keys, `doctor --provider`; the tables of the
 * help.
 */
#include "check.h"

#include "far.h"
#include "program.h"
#include "remote/protocol.h"

#include <stdlib.h>
#include <string.h>

static int choice(const char *name)
{
    int i = 1;
    while (provider_at(i) && strcmp(provider_at(i)->name, name) != 0)
        i++;
    assert_non_null(provider_at(i));
    return i;
}

/* ---- settings --------------------------------------------------------------------------------------------- */

static void t_settings(void **state)
{
    static const struct {
        const char *name, *model, *base, *protocol, *dialect, *is;
    } cases[] = {
        {"openai", NULL, "https://api.openai.com/v1", "responses", "openai-computer", "gpt-5.4"},
        {"anthropic", "m", "https://api.anthropic.com/v1", "messages", "anthropic-computer", "m"},
        {"google", "m", "https://generativelanguage.googleapis.com/v1beta/openai", "chat", "gemini", "m"},
        {"hcompany", NULL, "https://api.hcompany.ai/v1", "chat", "holo3", "holo3-1-35b-a3b"},
        {"openrouter", "qwen/qwen3-vl-8b", "https://openrouter.ai/api/v1", "chat", "qwen",
         "qwen/qwen3-vl-8b"},
        {"openrouter", "bytedance/ui-tars-1.5-7b", "https://openrouter.ai/api/v1", "chat", "uitars15",
         "bytedance/ui-tars-1.5-7b"},
        {"ollama", "qwen2.5vl:7b", "http://127.0.0.1:11434/v1", "chat", "qwen25", "qwen2.5vl:7b"},
        {"vllm", "Hcompany/Holo1.5-7B", "http://127.0.0.1:8000/v1", "chat", "holo15", "Hcompany/Holo1.5-7B"},
        {"llamacpp", "other", "http://127.0.0.1:8080/v1", "chat", "holo3", "other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct provider *is = provider_at(choice(cases[i].name));
        const struct endpoint_options o = {.provider = is, .model = cases[i].model};
        struct err e = ERR_INIT;
        if (is->variable)
            setenv(is->variable, "sesame-open", 1);
        struct endpoint *p = endpoint_open(&o, NULL, &e);
        if (!p || strcmp(p->base, cases[i].base) != 0 || strcmp(p->protocol->name, cases[i].protocol) != 0 ||
            strcmp(endpoint_dialect(p), cases[i].dialect) != 0 || strcmp(p->model, cases[i].is) != 0)
            fail_msg("%s: %s", cases[i].name, p ? endpoint_dialect(p) : e.text);
        assert_int_equal(p->key != NULL, is->variable != NULL);
        assert_true(!is->variable || !getenv(is->variable)); /* read once, then removed */
        endpoint_free(p);
    }
}

/* Options override --provider; an address from the environment does not get a provider's key. */
static void t_explicit(void **state)
{
    const struct provider *openai = provider_at(choice("openai"));
    struct endpoint_options o = {.base_url = "http://127.0.0.1:9/v1/",
                                 .provider = openai,
                                 .model = "mine",
                                 .key = "env:OTHER_KEY",
                                 .api = "chat"};
    struct err e = ERR_INIT;
    setenv("OTHER_KEY", "sesame-other", 1);
    setenv("OPENAI_API_KEY", "sesame-open", 1);
    struct endpoint *p = endpoint_open(&o, NULL, &e);
    assert_non_null(p);
    assert_string_equal(p->base, "http://127.0.0.1:9/v1");
    assert_string_equal(p->model, "mine");
    assert_string_equal(p->protocol->name, "chat");
    char *key = secrets_fill(p->key, "{{KEY}}");
    assert_string_equal(key, "sesame-other");
    secrets_free_filled(key);
    endpoint_free(p);
    assert_non_null(getenv("OPENAI_API_KEY"));

    setenv("HOLORUN_BASE_URL", "http://127.0.0.1:9/v1", 1);
    o = (struct endpoint_options){.base_url = getenv("HOLORUN_BASE_URL"), .provider = openai};
    p = endpoint_open(&o, NULL, &e);
    assert_string_equal(p->base, "https://api.openai.com/v1");
    endpoint_free(p);
    unsetenv("HOLORUN_BASE_URL");

    setenv("OPENAI_API_KEY", "", 1);
    assert_null(endpoint_open(&o, NULL, &e));
    assert_int_equal(e.kind, ERR_USAGE);
    assert_true(check_count(e.text, "--provider openai: the environment variable OPENAI_API_KEY"));
    unsetenv("OPENAI_API_KEY");
}

static void t_names(void **state)
{
    static const char *const cases[][2] = {
        {"qwen3-vl:8b", "qwen"},
        {"Qwen/Qwen3.5-35B-A3B", "qwen"},
        {"qwen2.5vl:7b", "qwen25"},
        {"Qwen2.5-VL-7B", "qwen25"},
        {"ui-tars-1.5-7b", "uitars15"},
        {"UI-TARS-7B-DPO", "uitars"},
        {"microsoft/Fara-7B", "fara"},
        {"Hcompany/Holo2-4B", "holo1"},
        {"Holo1.5-7B", "holo15"},
        {"Hcompany/Holo-3.1-9B", "holo3"},
        {"Hcompany/Holotron-12B", "holo3"},
        {"gemini-3-flash-preview", "gemini"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = dialect_for_name(cases[i][0]);
        if (!found || strcmp(found, cases[i][1]) != 0)
            fail_msg("%s: %s", cases[i][0], found ? found : "none");
    }
    assert_null(dialect_for_name("gpt-oss:20b"));
    assert_null(dialect_for_name(""));
}

/* ---- the program ------------------------------------------------------------------------------------------- */

static char *answer_all(void *arg, int n, const char *request)
{
    if (check_count(request, "GET /v1/models"))
        return xstrdup(FAR_JSON "{\"data\": [{\"id\": \"qwen3-vl\"}]}");
    if (check_count(request, "GET "))
        return xstrdup(FAR_ERROR("404 Not Found", "no"));
    return far_stream("1 2 3");
}

static void t_doctor(void **state)
{
    struct far_server s;
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    far_open_with(&s, answer_all, NULL);
    char *url = far_address(&s), *state_dir = xvfb_place(&x, "state");
    setenv("XDG_STATE_HOME", state_dir, 1);
    program_run(&x, &o, WORDS("doctor", "--provider", "vllm", "--base-url", url));
    assert_int_equal(o.code, 0);
    assert_int_equal(s.served, 0); /* offline by default */
    assert_true(check_count(o.out, "provider          vllm") && check_count(o.out, url) &&
                check_count(o.out, "protocol          chat"));
    assert_true(check_count(o.out, "the only model that the server lists"));
    program_run(&x, &o, WORDS("doctor", "--provider", "vllm", "--base-url", url, "--reach"));
    if (o.code || !check_count(o.out, "qwen3-vl") || !check_count(o.out, "dialect           qwen") ||
        !check_count(o.out, "speed"))
        fail_msg("%d: %s%s", o.code, o.out, o.err);
    assert_true(s.served > 1);
    unsetenv("OPENAI_API_KEY");
    program_run(&x, &o, WORDS("doctor", "--provider", "openai", "--json"));
    assert_int_equal(o.code, ERR_ENV);
    assert_true(check_count(o.out, "OPENAI_API_KEY") && check_count(o.out, "\"ok\": false"));
    setenv("OPENAI_API_KEY", "sesame-open", 1);
    program_run(&x, &o, WORDS("doctor", "--provider", "openai"));
    unsetenv("OPENAI_API_KEY");
    assert_int_equal(o.code, 0);
    assert_false(check_count(o.out, "sesame"));
    program_run(&x, &o, WORDS("ask", "What?", "--provider", "vllm", "--base-url", url));
    assert_string_equal(o.out, "1 2 3\n");
    program_run(&x, &o, WORDS("ask", "What?", "--provider", "nope"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_true(check_count(o.err, "--provider must be one of") && check_count(o.err, "openrouter"));
    unsetenv("XDG_STATE_HOME");
    far_close(&s);
    free(state_dir);
    free(url);
}

/* The help pages have a line for each row of the program's tables. */
static void t_help(void **state)
{
    struct xvfb x;
    struct outcome dialects = {0}, providers = {0}, man = {0}, models = {0}, shell = {0};
    xvfb_folder(&x);
    program_run(&x, &dialects, WORDS("help", "dialects"));
    program_run(&x, &providers, WORDS("help", "providers"));
    program_run(&x, &models, WORDS("help", "models"));
    program_run(&x, &man, WORDS("help", "--man"));
    program_run(&x, &shell, WORDS("completion", "bash"));
    for (const char *const *name = dialect_names(); *name; name++) {
        char *row = xasprintf("  %-19s %s\n", *name, dialect_suits(*name));
        assert_true(*dialect_suits(*name) && check_count(dialects.out, row));
        free(row);
    }
    for (int i = 1; provider_at(i); i++) {
        const struct provider *p = provider_at(i);
        assert_true(check_count(providers.out, p->name) && check_count(providers.out, p->base_url) &&
                    check_count(man.out, p->base_url));
        assert_true(!p->dialect || dialect_suits(p->dialect));
        assert_true(check_count(shell.out, p->name));
    }
    assert_true(check_count(man.out, ".SH DIALECTS") && check_count(man.out, ".SH PROVIDERS"));
    assert_true(check_count(models.out, "holorun help dialects"));
    assert_true(check_count(shell.out, " dialects providers "));
    outcome_free(&dialects);
    outcome_free(&providers);
    outcome_free(&models);
    outcome_free(&man);
    outcome_free(&shell);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a provider sets address, key, protocol, dialect and model", t_settings),
    CLAIM("explicit options win, a missing key is named, an address of the environment is ignored",
          t_explicit),
    CLAIM("the name of a model leads to its dialect", t_names),
    CLAIM("doctor checks a provider's settings offline, and its server when told to", t_doctor),
    CLAIM("help, manual and completion list every dialect and provider", t_help),
};

CHECK_MAIN()
