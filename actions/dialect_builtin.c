/* dialect_builtin.c - prompts/ as bytes of the binary.
 *
 * The assembler includes the files; the Makefile rebuilds this object when one of them changes.  Paths
 * are relative to the root of the source tree, where the compiler runs.
 */
#include "actions/tools.h"

#include <string.h>

/* clang-format off */
#define EMBED(symbol, path)                                              \
    extern const char symbol[], symbol##_end[];                          \
    __asm__(".pushsection .rodata\n"                                     \
            ".global " #symbol "\n" #symbol ":\n.incbin \"" path "\"\n"  \
            ".global " #symbol "_end\n" #symbol "_end:\n.byte 0\n"       \
            ".popsection\n")

EMBED(prompt_pocket, "prompts/pocket.json");
/* clang-format on */

static const struct {
    const char *name, *begin, *end;
} files[] = {
    {"pocket.json", prompt_pocket, prompt_pocket_end},
};

const char *builtin_file(const char *name, size_t *len)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(files[i].name, name)) {
            *len = (size_t)(files[i].end - files[i].begin);
            return files[i].begin;
        }
    return NULL;
}

const char *const *dialect_names(void)
{
    static const char *const names[] = {"pocket", NULL};
    return names;
}
