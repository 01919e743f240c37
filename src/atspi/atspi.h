/* atspi.h - libatspi, through which programs describe the contents of their windows to screen readers.
 *
 * The library (Debian: libatspi2.0-0) is loaded at first use, and only here. The prototypes are those of
 * at-spi2-core 2.46 (atspi/atspi-accessible.h and other headers there). Objects are references: atspi_drop()
 * releases one. Each call waits for a program, within a time limit.
 */
#ifndef HOLORUN_ATSPI_ATSPI_H
#define HOLORUN_ATSPI_ATSPI_H

#include "base/err.h"

#include <glib-object.h>
#include <stdbool.h>

enum { /* bits of a state set, and ATSPI_COORD_TYPE_SCREEN */
       ATSPI_ACTIVE = 1,
       ATSPI_EDITABLE = 7,
       ATSPI_FOCUSED = 12,
       ATSPI_MULTI_LINE = 17,
       ATSPI_SENSITIVE = 24,
       ATSPI_SHOWING = 25,
       ATSPI_VISIBLE = 30,
       ATSPI_IS_DEFAULT = 39,
       ATSPI_SCREEN = 0,
};

struct atspi_rect {
    gint x, y, width, height;
};

struct atspi_event { /* AtspiEvent */
    gchar *type;
    void *source;
    gint detail1, detail2;
    GValue any_data;
};

struct atspi {
    int (*init)(void); /* more than 1: no bus */
    void (*set_timeout)(gint call_ms, gint start_ms);
    void *(*desktop)(gint);
    gint (*child_count)(void *, GError **);
    void *(*child_at)(void *, gint, GError **);
    void *(*parent)(void *, GError **);
    gchar *(*name)(void *, GError **);
    gchar *(*role)(void *, GError **); /* through atspi_role() */
    void *(*states)(void *);
    gboolean (*has_state)(void *, int);
    void *(*component)(void *);
    void *(*at_point)(void *, gint, gint, int, GError **);
    struct atspi_rect *(*extents)(void *, int, GError **);
    void *(*text)(void *);
    gint (*text_length)(void *, GError **);
    gchar *(*text_get)(void *, gint, gint, GError **);
    void *(*document)(void *);
    gchar *(*document_attribute)(void *, const gchar *, GError **);
    void *(*listener_new)(void (*)(struct atspi_event *, void *), void *, void *);
    gboolean (*listener_register)(void *, const gchar *, GError **);
    GType (*event_type)(void);
};

/* Loads the library once per process. Returns NULL with ERR_ENV if it is missing or too old. */
const struct atspi *atspi_load(struct err *e);
void atspi_drop(void *object); /* accepts NULL */
/* Returns the name of a role in at-spi2-core before 2.53, which calls "push button" the role that later
 * versions call "button". Recordings and checks keep the older name. Borrowed. */
const char *atspi_role(const char *name);
bool atspi_is(const struct atspi *spi, void *object, int state);
/* Reads the rectangle of an object on the screen. Returns false if it has none. */
bool atspi_extents(const struct atspi *spi, void *object, struct atspi_rect *out);

#endif
