/* dialect_builtin.c - the files of prompts/, embedded in the binary. */
#include "actions/tools.h"

#include "base/embed.h"

#include <string.h>
#include <strings.h>

/* clang-format off */
#define FILES(ROW)                                                                                     \
    ROW(anthropic_computer, "anthropic-computer.json") ROW(openai_computer, "openai-computer.json")    \
    ROW(desktop_text, "desktop.txt")                                                                   \
    ROW(holo1, "holo1.json") ROW(holo15, "holo15.json") ROW(holo1_text, "holo1.txt")                   \
    ROW(holo3, "holo3.json") ROW(holo3_text, "holo3.txt")                                              \
    ROW(holo31, "holo31.json") ROW(holo31_text, "holo31.txt")                                          \
    ROW(pocket_wide, "pocket-wide.json")                                                               \
    ROW(pyautogui, "pyautogui.json") ROW(pyautogui_text, "pyautogui.txt")                              \
    ROW(recording, "recording.json") /* recordings (src/record), not a model */                        \
    ROW(host, "host.json")           /* MCP clients (src/host), not a model */                         \
    ROW(qwen, "qwen.json") ROW(qwen_text, "qwen.txt")                                                  \
    ROW(qwen25, "qwen25.json") ROW(qwen25_text, "qwen25.txt")                                          \
    ROW(fara, "fara.json") ROW(uitars15, "uitars15.json") ROW(uitars15_text, "uitars15.txt")           \
    ROW(gemini, "gemini.json") ROW(gemini_text, "gemini.txt")                                          \
    ROW(plain, "plain.json") ROW(uitars, "uitars.json") ROW(uitars_text, "uitars.txt")
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

/* Name, description of the models that it suits, words in names of such models.  New rows go to the end:
 * seeds of fuzz targets count by this order. */
/* clang-format off */
#define DIALECTS(ROW)                                                                                      \
    ROW("holo3", "Holo3, Holo3.1, Holotron; any model that keeps to a JSON schema", "holo3|holo-3|holotron")\
    ROW("holo1", "Holo2", "holo2|holo-2")                                                                  \
    ROW("uitars", "UI-TARS 1.0", "ui-tars|uitars")                                                         \
    ROW("pyautogui", "models that write pyautogui calls, positions from 0 to 1", "")                       \
    ROW("pocket-wide", "the model that comes with holorun", "")                                            \
    ROW("openai-computer", "OpenAI's models with the tool computer, --api responses", "")                  \
    ROW("anthropic-computer", "Claude with its computer tools, --api messages", "")                        \
    ROW("holo31", "Holo3.1 with native function calls", "")                                                \
    ROW("qwen", "Qwen3-VL, Qwen3.5, Qwen3.6, EvoCUA", "qwen3|qwen-3|evocua")                               \
    ROW("qwen25", "Qwen2.5-VL", "qwen2.5|qwen2_5|qwen25|qwen-2.5")                                         \
    ROW("fara", "Fara-7B", "fara-7b|fara7b|/fara")                                                         \
    ROW("uitars15", "UI-TARS 1.5", "ui-tars-1.5|ui-tars1.5|uitars-1.5|uitars1.5|ui-tars-15")               \
    ROW("gemini", "Gemini's computer use functions, --api chat", "gemini")                                 \
    ROW("holo15", "Holo1, Holo1.5", "holo1|holo-1")
#define DIALECT_NAME(name, suits, words) name,
#define DIALECT_ROW(name, suits, words) {name, suits, words},
/* clang-format on */

static const struct {
    const char *name, *suits, *words;
} dialects[] = {DIALECTS(DIALECT_ROW)};

const char *const *dialect_names(void)
{
    static const char *const names[] = {DIALECTS(DIALECT_NAME) NULL};
    return names;
}

const char *dialect_suits(const char *name)
{
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++)
        if (!strcmp(dialects[i].name, name))
            return dialects[i].suits;
    return NULL;
}

/* Returns the length of the longest of the words "a|b" in a name; 0: none of them. */
static size_t longest_in(const char *name, const char *words)
{
    size_t most = 0;
    for (const char *w = words; *w;) {
        size_t n = strcspn(w, "|");
        for (const char *at = name; *at && n > most; at++)
            if (!strncasecmp(at, w, n))
                most = n;
        w += n + (w[n] == '|');
    }
    return most;
}

const char *dialect_for_name(const char *model)
{
    const char *found = NULL;
    size_t most = 0;
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        size_t n = longest_in(model, dialects[i].words);
        found = n > most ? dialects[i].name : found;
        most = n > most ? n : most;
    }
    return found;
}
