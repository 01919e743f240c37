/* embed.h - embeds a file of the source tree in the binary.
 *
 * EMBED(name, "path") defines `const char name[]`, and `name_end[]`, a NUL after it. The path is relative
 * to the directory in which make runs; the Makefile rebuilds the object when the file changes. */
#pragma once

/* clang-format off */
/* NOLINTBEGIN(bugprone-macro-parentheses): a symbol cannot be put in parentheses */
#define EMBED(symbol, path)                                              \
    extern const char symbol[], symbol##_end[];                          \
    __asm__(".pushsection .rodata\n"                                     \
            ".global " #symbol "\n" #symbol ":\n.incbin \"" path "\"\n"  \
            ".global " #symbol "_end\n" #symbol "_end:\n.byte 0\n"       \
            ".popsection\n")
/* NOLINTEND(bugprone-macro-parentheses) */
/* clang-format on */
