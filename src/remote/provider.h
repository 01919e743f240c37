/* provider.h - model services and local servers that are known by name (--provider): address, environment
 * variable of the key, protocol, dialect, model.
 *
 * Each member is a default, which an explicit option overrides. To add a provider, add a row to PROVIDERS;
 * the option's choices, shell completion, help and `holorun doctor` use the table. */
#pragma once

#include <stdbool.h>

/* name, address, environment variable of the key, protocol, dialect, model. NULL as dialect: chosen by the
 * model's name. */
/* clang-format off */
#define PROVIDERS(ROW)                                                                                       \
    ROW(openai, "https://api.openai.com/v1", "OPENAI_API_KEY", "responses", "openai-computer", "gpt-5.4")    \
    ROW(anthropic, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "messages", "anthropic-computer",    \
        "claude-sonnet-5")                                                                                   \
    ROW(google, "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", "chat",         \
        "gemini", NULL)                                                                                      \
    ROW(hcompany, "https://api.hcompany.ai/v1", "HAI_API_KEY", "chat", "holo3", "holo3-1-35b-a3b")           \
    ROW(openrouter, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "chat", NULL, NULL)                \
    ROW(ollama, "http://127.0.0.1:11434/v1", NULL, "chat", NULL, NULL)                                       \
    ROW(vllm, "http://127.0.0.1:8000/v1", NULL, "chat", NULL, NULL)                                          \
    ROW(llamacpp, "http://127.0.0.1:8080/v1", NULL, "chat", NULL, NULL)
/* clang-format on */

#define PROVIDER_CHOICE(name, ...) "|" #name
#define PROVIDER_CHOICES           "none" PROVIDERS(PROVIDER_CHOICE)

struct provider {
    const char *name, *base_url;
    const char *variable; /* NULL: a server on this machine, without a key */
    const char *api;
    const char *dialect; /* NULL: dialect_for_name() of the model */
    const char *model;   /* NULL: the only model that it lists, else the user must name one */
};

/* Returns the provider of a choice, an index into PROVIDER_CHOICES (0: none). NULL: no such provider. */
const struct provider *provider_at(int choice);
