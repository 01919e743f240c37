/* fold.h - folds a text to the form that a human reads: look-alike letters of other scripts, styled and
 * accented letters become plain ones, invisible characters are removed, spaced words are joined. */
#pragma once

/* Returns the folded text in lower case; the caller frees it. text: UTF-8. */
char *fold_text(const char *text);
/* Does the same for identifiers such as deleteAccount or btn_delete_account. The caller frees the result. */
char *fold_identifier(const char *text);
