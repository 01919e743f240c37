/* fold.h - a text as a person reads it: look-alike letters of other scripts, styled and accented letters
 * become plain ones, invisible characters vanish, spaced-out words close up.
 */
#ifndef HOLORUN_GATE_FOLD_H
#define HOLORUN_GATE_FOLD_H

/* In lower case; owned by the caller.  text: UTF-8. */
char *fold_text(const char *text);
/* The same of a name as programmers write it: deleteAccount, btn_delete_account.  The caller frees it. */
char *fold_identifier(const char *text);

#endif
