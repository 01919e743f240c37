/* elements_impl.h - functions of the child of elements.c that read texts. Private to atspi/. */
#ifndef HOLORUN_ATSPI_ELEMENTS_IMPL_H
#define HOLORUN_ATSPI_ELEMENTS_IMPL_H

#include "atspi/atspi.h"

#include <jansson.h>

/* Returns {"page", "tools", "editable", "text"} of an element (struct element_field). */
json_t *elements_read_field(const struct atspi *spi, void *object);
/* Returns the text of the dialog around an element as a string, "" without a dialog. */
json_t *elements_read_dialog(const struct atspi *spi, void *object);

#endif
