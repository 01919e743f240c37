/* dialect_builtin.c - the files of prompts/, embedded in the binary.
 *
 * The assembler includes them; the Makefile rebuilds this object when one changes.  Paths are relative to
 * the root of the source tree, where the compiler runs.
 */
#include "actions/tools.h"

#include <string.h>

/* clang-format off */
/* NOLINTBEGIN(bugprone-macro-parentheses): a symbol cannot stand in parentheses */
#define EMBED(symbol, path)                                              \
    extern const char symbol[], symbol##_end[];                          \
    __asm__(".pushsection .rodata\n"                                     \
            ".global " #symbol "\n" #symbol ":\n.incbin \"" path "\"\n"  \
            ".global " #symbol "_end\n" #symbol "_end:\n.byte 0\n"       \
            ".popsection\n")

EMBED(prompt_anthropic, "prompts/anthropic.json");
EMBED(prompt_computer_text, "prompts/computer.txt");
EMBED(prompt_function, "prompts/function.json");
EMBED(prompt_function_text, "prompts/function.txt");
EMBED(prompt_holo1, "prompts/holo1.json");
EMBED(prompt_holo1_abs, "prompts/holo1-abs.json");
EMBED(prompt_holo1_text, "prompts/holo1.txt");
EMBED(prompt_holo3, "prompts/holo3.json");
EMBED(prompt_holo3_text, "prompts/holo3.txt");
EMBED(prompt_openai, "prompts/openai.json");
EMBED(prompt_pocket, "prompts/pocket.json");
EMBED(prompt_pyautogui, "prompts/pyautogui.json");
EMBED(prompt_pyautogui_text, "prompts/pyautogui.txt");
EMBED(prompt_uitars, "prompts/uitars.json");
EMBED(prompt_uitars_text, "prompts/uitars.txt");
/* NOLINTEND(bugprone-macro-parentheses) */
/* clang-format on */

static const struct {
    const char *name, *begin, *end;
} files[] = {
    {"holo3.json", prompt_holo3, prompt_holo3_end},
    {"holo3.txt", prompt_holo3_text, prompt_holo3_text_end},
    {"holo1.json", prompt_holo1, prompt_holo1_end},
    {"holo1-abs.json", prompt_holo1_abs, prompt_holo1_abs_end},
    {"holo1.txt", prompt_holo1_text, prompt_holo1_text_end},
    {"function.json", prompt_function, prompt_function_end},
    {"function.txt", prompt_function_text, prompt_function_text_end},
    {"uitars.json", prompt_uitars, prompt_uitars_end},
    {"uitars.txt", prompt_uitars_text, prompt_uitars_text_end},
    {"anthropic.json", prompt_anthropic, prompt_anthropic_end},
    {"openai.json", prompt_openai, prompt_openai_end},
    {"computer.txt", prompt_computer_text, prompt_computer_text_end},
    {"pyautogui.json", prompt_pyautogui, prompt_pyautogui_end},
    {"pyautogui.txt", prompt_pyautogui_text, prompt_pyautogui_text_end},
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
    static const char *const names[] = {"holo3",     "holo1",  "holo1-abs", "function", "uitars",
                                        "anthropic", "openai", "pyautogui", "pocket",   NULL};
    return names;
}
