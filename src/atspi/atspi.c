/* atspi.c - loads libatspi and wraps some of its calls; see atspi.h. */
#include "atspi/atspi.h"

#include <dlfcn.h>
#include <string.h>

static struct atspi spi;
static gchar *(*library_role)(void *, GError **);

const char *atspi_role(const char *name)
{
    return strcmp(name, "button") ? name : "push button";
}

static gchar *read_role(void *object, GError **e)
{
    gchar *role = library_role(object, e), *old = role ? g_strdup(atspi_role(role)) : NULL;
    g_free(role);
    return old;
}

const struct atspi *atspi_load(struct err *e)
{
    static const struct {
        const char *name;
        void *to;
    } wanted[] = {
        {"atspi_init", &spi.init},
        {"atspi_set_timeout", &spi.set_timeout},
        {"atspi_get_desktop", &spi.desktop},
        {"atspi_accessible_get_child_count", &spi.child_count},
        {"atspi_accessible_get_child_at_index", &spi.child_at},
        {"atspi_accessible_get_parent", &spi.parent},
        {"atspi_accessible_get_name", &spi.name},
        {"atspi_accessible_get_role_name", &library_role},
        {"atspi_accessible_get_state_set", &spi.states},
        {"atspi_state_set_contains", &spi.has_state},
        {"atspi_accessible_get_component_iface", &spi.component},
        {"atspi_component_get_accessible_at_point", &spi.at_point},
        {"atspi_component_get_extents", &spi.extents},
        {"atspi_accessible_get_text_iface", &spi.text},
        {"atspi_text_get_character_count", &spi.text_length},
        {"atspi_text_get_text", &spi.text_get},
        {"atspi_accessible_get_document_iface", &spi.document},
        {"atspi_document_get_document_attribute_value", &spi.document_attribute},
        {"atspi_event_listener_new", &spi.listener_new},
        {"atspi_event_listener_register", &spi.listener_register},
        {"atspi_event_get_type", &spi.event_type},
    };
    void *lib = dlopen("libatspi.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        err_set(e, ERR_ENV, "cannot load libatspi.so.0 (Debian: libatspi2.0-0): %s", dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *at = dlsym(lib, wanted[i].name);
        if (!at) {
            err_set(e, ERR_ENV, "libatspi.so.0 has no %s", wanted[i].name);
            return NULL;
        }
        memcpy(wanted[i].to, &at, sizeof at);
    }
    spi.role = read_role;
    return &spi;
}

void atspi_drop(void *object)
{
    if (object)
        g_object_unref(object);
}

bool atspi_is(const struct atspi *a, void *object, int state)
{
    void *set = a->states(object);
    bool yes = set && a->has_state(set, state);
    atspi_drop(set);
    return yes;
}

bool atspi_extents(const struct atspi *a, void *object, struct atspi_rect *out)
{
    void *component = a->component(object);
    struct atspi_rect *r = component ? a->extents(component, ATSPI_SCREEN, NULL) : NULL;
    bool known = r && r->width > 0 && r->height > 0;
    if (known)
        *out = *r;
    g_free(r);
    atspi_drop(component);
    return known;
}
