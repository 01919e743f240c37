/* fuzz_keys.c - keys as written by a model: byte 0 selects whether "cmd" is Control, the rest is the text.
 *
 * Any input gives shortcuts of 1 to 8 different keys, or a fault with a message of one line.
 */
#include "actions/keys.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct key_sequence s;
    if (!size)
        return 0;
    enum action_fault f = keys_parse((const char *)data + 1, size - 1, data[0] & 1, &s, &e);
    require(f ? *e.text && (f == FAULT_KEY || f == FAULT_SCHEMA) : !*e.text, "a fault has a message");
    require(f || (s.n >= 1 && s.n <= KEYS_MAX_CHORDS), "there is a chord");
    for (int i = 0; !f && i < s.n; i++) {
        const struct key_chord *c = &s.chords[i];
        require(c->n >= 1 && c->n <= ACTION_MAX_KEYS, "a chord has keys");
        for (int k = 0; k < c->n; k++)
            for (int j = 0; j < k; j++)
                require(c->keys[k] && c->keys[k] != c->keys[j], "the keys of a chord differ");
    }
    return 0;
}
