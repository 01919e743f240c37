/* manual_impl.h - what help, manual pages and completion share. */
#ifndef HOLORUN_CLI_MANUAL_IMPL_H
#define HOLORUN_CLI_MANUAL_IMPL_H

#include "cli/manual.h"

extern const char manual_exit_codes[]; /* "0 answered; 1 ..." */

/* A paragraph whose lines stay as they are, such as the keys of a file. */
bool manual_is_layout(const char *paragraph);
/* The next paragraph of a text, which the caller frees; NULL: none. */
char *manual_next_paragraph(const char **text);

bool option_on_by_default(const struct option_spec *o);
/* "--max-steps N", or "--no-report" of a flag that is on by default; and its help with bounds and default. */
void manual_spelling(const struct option_spec *o, char *out, size_t size);
void manual_remark(const struct option_spec *o, char *out, size_t size);

#endif
