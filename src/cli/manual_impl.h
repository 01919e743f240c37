/* manual_impl.h - declarations shared by help, manual pages and completion. */
#pragma once

#include "cli/manual.h"

extern const char manual_exit_codes[]; /* such as "0 answered; 1 ..." */

/* Returns whether the lines of a paragraph must not be wrapped, such as the keys of a file. */
bool manual_is_layout(const char *paragraph);
/* Returns the next paragraph of a text, which the caller frees, and advances *text; NULL: none. */
char *manual_next_paragraph(const char **text);

bool option_on_by_default(const struct option_spec *o);
/* manual_spelling() writes "--max-steps N", or "--no-report" for a flag that is on by default;
 * manual_remark() its help with bounds and default. */
void manual_spelling(const struct option_spec *o, char *out, size_t size);
void manual_remark(const struct option_spec *o, char *out, size_t size);
