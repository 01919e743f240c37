/* topics.c - see topics.h. */
#include "cmd/topics.h"

#include "actions/dialect.h"
#include "base/buf.h"
#include "remote/endpoint.h"
#include "trace/status.h"

enum { MAX_TOPIC = 64 << 10 };

static char *dialects_text(void)
{
    struct buf b;
    buf_init(&b, MAX_TOPIC);
    for (const char *const *name = dialect_names(); *name; name++)
        buf_printf(&b, "  %-19s %s\n", *name, dialect_suits(*name));
    return buf_take(&b);
}

static char *providers_text(void)
{
    struct buf b;
    const struct provider *p;
    buf_init(&b, MAX_TOPIC);
    for (int i = 1; (p = provider_at(i)); i++) {
        buf_printf(&b, "  %-11s %s\n", p->name, p->base_url);
        buf_printf(&b, "  %-11s key: %s; protocol: %s; dialect: %s;\n", "",
                   p->variable ? p->variable : "none", p->api,
                   p->dialect ? p->dialect : "by the model's name");
        buf_printf(&b, "  %-11s model: %s\n", "",
                   p->model      ? p->model
                   : p->variable ? "set with --model"
                                 : "the only model of the server, else set with --model");
    }
    return buf_take(&b);
}

static char *ends_text(void)
{
    struct buf b;
    buf_init(&b, MAX_TOPIC);
    for (int s = AGENT_ANSWERED; s < AGENT_STATUSES; s++) {
        const struct status_row *row = status_row((enum agent_status)s);
        buf_printf(&b, "  %-12s %3d  %s%s\n", row->name, row->exit, row->meaning,
                   s == AGENT_FAILED ? " (4 if the model failed)" : "");
    }
    return buf_take(&b);
}

const struct topic topics[] = {
    {"dialects", "reply formats (--dialect) and their models", dialects_text},
    {"providers", "services and local servers (--provider) and their settings", providers_text},
    {"exit", "results of a run: status, exit code, meaning", ends_text},
    {0},
};
