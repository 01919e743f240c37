/* elements_impl.h - what the child of elements.c reads beside names.  Private to record/elements*.c. */
#ifndef HOLORUN_RECORD_ELEMENTS_IMPL_H
#define HOLORUN_RECORD_ELEMENTS_IMPL_H

#include "record/atspi.h"

#include <jansson.h>

/* {"page", "tools", "editable", "text"}: struct element_field of an element. */
json_t *elements_read_field(const struct atspi *spi, void *object);
/* The text of the dialog around an element, a string; "": there is no dialog. */
json_t *elements_read_dialog(const struct atspi *spi, void *object);

#endif
