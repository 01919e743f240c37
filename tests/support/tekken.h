/* tekken.h - the full-size tokenizer of the family, from tests/golden/tokenizer/tekken.bin.
 *
 * The table is unpacked and written in the format of Hugging Face: 1000 special ids, 130072 tokens, 269443
 * merges, and the added tokens of the vision models.
 */
#pragma once

#include <stddef.h>

enum { TEKKEN_SPECIAL = 1000, TEKKEN_IDS = 131072, TEKKEN_ADDED = 10 };

/* Returns the text of tokenizer.json; the caller frees it. Fails the test if the table cannot be read. */
char *tekken_json(size_t *len);
