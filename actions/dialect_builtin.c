/* dialect_builtin.c - the files of prompts/, embedded in the binary. */
#include "actions/tools.h"

#include "base/embed.h"

#include <string.h>

/* clang-format off */
#define FILES(ROW)                                                                                     \
    ROW(anthropic, "anthropic.json") ROW(anthropic_computer, "anthropic-computer.json")                \
    ROW(computer_text, "computer.txt") ROW(desktop_text, "desktop.txt")                                \
    ROW(openai_computer, "openai-computer.json") ROW(function, "function.json")                        \
    ROW(function_text, "function.txt") ROW(holo1, "holo1.json") ROW(holo1_abs, "holo1-abs.json")       \
    ROW(holo15, "holo15.json")                                                                         \
    ROW(holo1_text, "holo1.txt") ROW(holo3, "holo3.json") ROW(holo3_text, "holo3.txt")                 \
    ROW(holo31, "holo31.json") ROW(holo31_text, "holo31.txt")                                          \
    ROW(openai, "openai.json") ROW(pocket_wide, "pocket-wide.json")                                    \
    ROW(pyautogui, "pyautogui.json") ROW(pyautogui_text, "pyautogui.txt")                              \
    ROW(recording, "recording.json") /* no model's: of src/record/playback.c */                        \
    ROW(host, "host.json")           /* no model's: of src/host/hand.c */                              \
    ROW(qwen, "qwen.json")                                                                             \
    ROW(qwen_text, "qwen.txt") ROW(qwen25, "qwen25.json") ROW(qwen25_text, "qwen25.txt")               \
    ROW(fara, "fara.json") ROW(uitars15, "uitars15.json") ROW(uitars15_text, "uitars15.txt")           \
    ROW(gemini, "gemini.json") ROW(gemini_text, "gemini.txt")                                          \
    ROW(uitars, "uitars.json") ROW(uitars_text, "uitars.txt")
#define EMBED_PROMPT(symbol, file) EMBED(prompt_##symbol, "prompts/" file);
#define ENTRY(symbol, file) {file, prompt_##symbol, prompt_##symbol##_end},
/* clang-format on */

FILES(EMBED_PROMPT)

static const struct {
    const char *name, *begin, *end;
} files[] = {FILES(ENTRY)};

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
    /* clang-format off */
    static const char *const names[] = {
        "holo3",  "holo1",     "holo1-abs",   "function",        "uitars",             "anthropic",
        "openai", "pyautogui", "pocket-wide", "openai-computer", "anthropic-computer", "holo31",
        "qwen",   "qwen25",    "fara",        "uitars15",        "gemini",             "holo15",
        NULL};
    /* clang-format on */
    return names;
}
