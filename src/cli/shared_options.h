/* shared_options.h - rows of option tables (options.h) that several commands share.
 *
 * The comment above each macro lists the members that T, the command's settings, must have. */
#pragma once

#include "base/bar.h"
#include "cli/options.h"

/* clang-format off */

#define MODEL_SETTINGS                                                                                       \
    const char *model, *device, *isa;                                                                        \
    int threads, weights_in, weights, tower, activations, state, kv, min_pixels, max_pixels;                 \
    int speculate;                                                                                           \
    bool weight_cache, f32;                                                                                  \
    size_t state_memory

/* MODEL_SETTINGS; */
#define MODEL_OPTIONS(T)                                                                                     \
    {"model", 'm', OPTION_TEXT, offsetof(T, model), "DIR", 0, 4096, NULL,                                    \
     "model directory (Hugging Face layout), ORG/NAME in the hub's cache, a GGUF file, ollama:NAME:TAG, "    \
     "or a blob of Ollama. The vision encoder of a Qwen3.5 GGUF file is read from a file with \"mmproj\" "   \
     "in its name in the same directory, or give both: TEXT.gguf,VISION.gguf. GGUF files of Qwen2 and "      \
     "Qwen3 are text models (for ask, serve and bench, without images); default: the embedded model",        \
     "HOLORUN_MODEL", .group = "model"},                                                                     \
    {"device", 0, OPTION_TEXT, offsetof(T, device), "auto|cpu|cuda[:N]", 0, 32, "auto",                      \
     "where to run the model; auto selects a GPU with enough free memory, else the CPU", "HOLORUN_DEVICE"},  \
    {"threads", 0, OPTION_INT, offsetof(T, threads), "N", 0, 256, "0",                                       \
     "CPU threads for the model, 0 for one per core", "HOLORUN_THREADS", .show = OPTION_MORE},               \
    WEIGHTS_OPTIONS(T),                                                                                      \
    ACTIVATIONS_OPTION(T),                                                                                   \
    STATE_OPTION(T),                                                                                         \
    PIXEL_OPTIONS(T),                                                                                        \
    {"state-memory", 0, OPTION_SIZE, offsetof(T, state_memory), "SIZE", 0, 0, NULL,                          \
     "memory for the states of all sessions, such as 24G; default on a GPU: all memory that the weights "    \
     "leave free; idle states are spilled to host memory", "HOLORUN_STATE_MEMORY", .show = OPTION_MORE},     \
    {"speculate", 0, OPTION_INT, offsetof(T, speculate), "N", 0, 15, "0",                                    \
     "draft up to N tokens from earlier text of the conversation (prompt lookup) and verify them in one "    \
     "pass over the weights; replies stay the same. Faster on a GPU with one session and repetitive "        \
     "text; typical values are 4 to 8", "HOLORUN_SPECULATE", .show = OPTION_MORE},                           \
    {"isa", 0, OPTION_TEXT, offsetof(T, isa), "NAME", 0, 32, NULL,                                           \
     "instruction set of the CPU kernels: avx2, avx512 or avx512bf16; on ARM neon, neondot or neonbf16; "    \
     "\"ref\" for the scalar reference; default: the best available",                                        \
     "HOLORUN_ISA", .show = OPTION_SWITCH},                                                                  \
    {"f32", 0, OPTION_FLAG, offsetof(T, f32), NULL, 0, 0, NULL, "compute in f32 instead of bf16",            \
     "HOLORUN_F32", .show = OPTION_SWITCH},                                                                  \
    {"weight-cache", 0, OPTION_FLAG, offsetof(T, weight_cache), NULL, 0, 0, "yes",                           \
     "cache quantized weights in a file, so that the next start maps it; \"no\" turns it off",               \
     "HOLORUN_WEIGHT_CACHE", .show = OPTION_SWITCH}

#define ENDPOINT_SETTINGS                                                                                    \
    const char *base_url, *key, *profile;                                                                    \
    int api, provider

/* ENDPOINT_SETTINGS; the including file must include remote/endpoint.h. */
#define ENDPOINT_OPTIONS(T)                                                                                  \
    {"provider", 0, OPTION_CHOICE, offsetof(T, provider), PROVIDER_CHOICES, 0, 0, "none",                    \
     "use a model of this service, or of a server on this machine: sets address, key variable, protocol, "   \
     "dialect and model; other options override these settings (see holorun help providers)", NULL},         \
    {"base-url", 0, OPTION_TEXT, offsetof(T, base_url), "URL", 0, 4096, NULL,                                \
     "use a model behind this address, such as http://127.0.0.1:8000/v1; --model is then its name on the "   \
     "server", "HOLORUN_BASE_URL"},                                                                          \
    {"key", 0, OPTION_TEXT, offsetof(T, key), "env:VARIABLE|file:PATH", 0, 4096, NULL,                       \
     "API key for the server", NULL, .show = OPTION_MORE},                                                   \
    {"profile", 0, OPTION_TEXT, offsetof(T, profile), "FILE", 0, 4096, NULL,                                 \
     "profile of the server: support of schemas, number of images, prices, time limits (JSON); default: "    \
     "the results of holorun doctor --base-url", NULL, .show = OPTION_MORE},                                 \
    {"api", 0, OPTION_CHOICE, offsetof(T, api), "auto|chat|responses|messages", 0, 0, "auto",                \
     "protocol of the server: Chat Completions, OpenAI Responses, Anthropic Messages; auto: as in the "      \
     "profile, else chat", NULL, .show = OPTION_MORE}

/* Evaluates whether settings S name a model behind an endpoint. */
#define ENDPOINT_GIVEN(S) ((S).base_url || (S).provider)

/* initializer of struct endpoint_options (remote/endpoint.h) from settings S */
#define ENDPOINT_AT(S)                                                                                       \
    {.base_url = (S).base_url, .model = (S).model, .key = (S).key, .profile = (S).profile,                   \
     .provider = provider_at((S).provider),                                                                  \
     .api = (const char *const[]){NULL, "chat", "responses", "messages"}[(S).api]}

/* int weights_in, weights, tower, kv; */
#define WEIGHTS_OPTIONS(T)                                                                                   \
    {"weights", 0, OPTION_CHOICE, offsetof(T, weights), "auto|bf16|int8|int4|fp8", 0, 0, "auto",             \
     "storage type of the large weight matrices; auto: that of the checkpoint; other types are quantized "   \
     "at the first start", "HOLORUN_WEIGHTS"},                                                               \
    {"tower", 0, OPTION_CHOICE, offsetof(T, tower), "auto|int8", 0, 0, "auto",                               \
     "storage type of the vision encoder; int8 halves its memory, for a small GPU", "HOLORUN_TOWER",         \
     .show = OPTION_MORE},                                                                                   \
    {"kv", 0, OPTION_CHOICE, offsetof(T, kv), "auto|fp8", 0, 0, "auto",                                      \
     "storage type of the KV cache; fp8: one byte per value and a scale per token and head; not for "        \
     "Qwen2.5, whose large keys lose too much precision", "HOLORUN_KV",                                      \
     .show = OPTION_MORE},                                                                                   \
    {"weights-in", 0, OPTION_CHOICE, offsetof(T, weights_in), "auto|ram|mmap", 0, 0, "auto",                 \
     "copy the weights to memory (ram), or mmap the files and read them in place; auto copies them if "      \
     "they fit",                                                                                             \
     "HOLORUN_WEIGHTS_IN", .show = OPTION_MORE}

/* int activations; */
#define ACTIVATIONS_OPTION(T)                                                                                \
    {"activations", 0, OPTION_CHOICE, offsetof(T, activations), "auto|int8|fp8|bf16", 0, 0, "auto",          \
     "precision of the activations in matrix products; int8: quantize them (W8A8), faster on a CPU; fp8: "   \
     "the same for prompts on a GPU with such products (RTX 40, H100 and later), with weights in fp8; bf16: "\
     "do not quantize; auto: int8 for the language model in blocks of a GGUF file on a CPU, else bf16. "     \
     "bench --section drift --text measures the error",                                                      \
     "HOLORUN_ACTIVATIONS", .show = OPTION_MORE}

/* int min_pixels, max_pixels; */
#define PIXEL_OPTIONS(T)                                                                                     \
    {"max-pixels", 0, OPTION_INT, offsetof(T, max_pixels), "N", 0, 1 << 28, "0",                             \
     "scale larger images down to this number of pixels, for models that accept any image size (Qwen3.5, "   \
     "Holo 3); the encoder's time grows with its square. 0: the limit in the model's files, and for a "      \
     "run on a CPU the number with which a step takes at most 20 seconds, but at least 737280",              \
     "HOLORUN_MAX_PIXELS", .show = OPTION_MORE},                                                             \
    {"min-pixels", 0, OPTION_INT, offsetof(T, min_pixels), "N", 0, 1 << 28, "0",                             \
     "scale smaller images up to this number of pixels, which helps to read small text; example: 1843200",   \
     "HOLORUN_MIN_PIXELS", .show = OPTION_MORE}

/* int state; */
#define STATE_OPTION(T)                                                                                      \
    {"state", 0, OPTION_CHOICE, offsetof(T, state), "fp32|fp16", 0, 0, "fp32",                               \
     "storage type of the recurrent state; fp16 halves it with stochastic rounding, and is refused for "     \
     "models whose answers it would change", "HOLORUN_STATE", .show = OPTION_MORE}

/* initializer of struct engine_options from settings S */
#define MODEL_ENGINE(S)                                                                                      \
    {.dir = (S).model, .device = (S).device, .isa = (S).isa, .threads = (S).threads, .f32 = (S).f32,         \
     .weights_in = (enum weights_in)(S).weights_in, .weights = (enum weight_storage)(S).weights,             \
     .activations = (enum activation_rounding)(S).activations, .tower = (enum tower_storage)(S).tower,       \
     .cache = (S).weight_cache, .state = (enum state_storage)(S).state, .kv = (enum kv_storage)(S).kv,       \
     .state_memory = (S).state_memory, .speculate = (S).speculate,                                           \
     .min_pixels = (S).min_pixels, .max_pixels = (S).max_pixels,                                             \
     .progress = bar_loading}

/* const char *display, *view; bool cursor; */
#define SCREEN_OPTIONS(T)                                                                                    \
    {"display", 'd', OPTION_TEXT, offsetof(T, display), "NAME", 0, 256, NULL, "X display to work on",        \
     "DISPLAY", .group = "screen"},                                                                          \
    {"view", 'v', OPTION_TEXT, offsetof(T, view), "WHAT", 0, 256, NULL,                                      \
     "part of the display: all, a monitor's name or number, window:ID, or active, the window with the "      \
     "keyboard focus; default: as in the dialect, else all",                                                 \
     NULL},                                                                                                  \
    {"cursor", 0, OPTION_FLAG, offsetof(T, cursor), NULL, 0, 0, NULL,                                        \
     "show the pointer in screenshots", NULL}

/* bool elements; */
#define ELEMENTS_OPTION(T)                                                                                   \
    {"elements", 0, OPTION_FLAG, offsetof(T, elements), NULL, 0, 0, "yes",                                   \
     "let programs describe their elements (AT-SPI) and read their names for rules; without, a private "     \
     "desktop has no session bus", NULL, .show = OPTION_MORE}

/* bool elements; int elements_text; */
#define ELEMENTS_OPTIONS(T)                                                                                  \
    ELEMENTS_OPTION(T),                                                                                      \
    {"elements-text", 0, OPTION_CHOICE, offsetof(T, elements_text), "no|add|only", 0, 0, "no",               \
     "give the model the elements of the active window as text with refs, which may stand for places in "    \
     "its replies: with each screenshot (add), or instead of it, for models without vision (only); "         \
     "see holorun help elements",                                                                            \
     "HOLORUN_ELEMENTS_TEXT", .show = OPTION_MORE}

/* const char *dialect; */
#define DIALECT_OPTION(T)                                                                                    \
    {"dialect", 0, OPTION_TEXT, offsetof(T, dialect), "NAME", 0, 4096, NULL,                                 \
     "prompt and reply format, a built-in name or a file; default: the model's own", NULL}

/* bool localizer; int validator, max_validations; UNLESS: another source of the numbers, as ", where ...". */
#define ASKED_ANEW_OPTIONS(T, UNLESS)                                                                        \
    {"validator", 0, OPTION_INT, offsetof(T, validator), "N", 0, 9, "0",                                     \
     "accept an answer only if the model, in a separate session, confirms N times in a row from the last "   \
     "screenshots that the task is done" UNLESS "; else the agent gets the reason and continues", NULL},     \
    {"max-validations", 0, OPTION_INT, offsetof(T, max_validations), "N", 1, 100, "3",                       \
     "rejected answers after which the run ends with exit code 1", NULL, .show = OPTION_MORE},               \
    {"localizer", 0, OPTION_FLAG, offsetof(T, localizer), NULL, 0, 0, NULL,                                  \
     "locate each click target with a second question about the newest screenshot only", NULL,               \
     .show = OPTION_MORE}

/* const char *hide[OPTION_LIST_MAX + 1]; UNLESS: another source of the areas. */
#define HIDE_OPTION(T, UNLESS)                                                                               \
    {"hide", 0, OPTION_LIST, offsetof(T, hide), "X,Y,WIDTH,HEIGHT", 0, 127, NULL,                            \
     "area of the root window, in pixels or %, to mask in screenshots and the record, such as "              \
     "0,0,100%,32; may be repeated" UNLESS, NULL}

/* const char *step; */
#define STEP_OPTION(T, MORE)                                                                                 \
    {"step", 0, OPTION_MAYBE, offsetof(T, step), "terminal|window|script:FILE", 0, 4096, NULL,               \
     "show each step before it is performed, to run, change, veto, resample or rewind it; see holorun "      \
     "step" MORE,                                                                                            \
     NULL, .group = "stepping"}

/* const char *breaks[OPTION_LIST_MAX + 1]; */
#define BREAK_OPTION(T)                                                                                      \
    {"break", 0, OPTION_LIST, offsetof(T, breaks), "WHEN", 0, 255, NULL,                                     \
     "with --step: run until this breakpoint; may be repeated: step 7, kind click, text PATTERN, window "    \
     "PATTERN, irreversible, confidence 0.8, no-effect, X and Y", NULL}

/* const char *policy, *confirm; double confirm_timeout; */
#define RULES_OPTIONS(T)                                                                                     \
    {"policy", 0, OPTION_TEXT, offsetof(T, policy), "FILE", 0, 4096, NULL,                                   \
     "rules and limits that precede the built-in rules (see holorun policy); default: policy.yaml in the "   \
     "user's configuration folder, if it exists", "HOLORUN_POLICY", .group = "safety"},                      \
    {"confirm", 0, OPTION_TEXT, offsetof(T, confirm), "HOW", 0, 4096, "auto",                                \
     "how to confirm an action if a rule requires it: tty (ask in the terminal), cmd:COMMAND (gets the "     \
     "question as JSON on stdin, exit code 0 means yes), never (always no), yes-to-all (always yes), "       \
     "caller (with mcp, the calling program may answer itself: dangerous), or auto: tty if there is a "      \
     "terminal, else never",                                                                                 \
     "HOLORUN_CONFIRM"},                                                                                     \
    {"confirm-timeout", 0, OPTION_NUMBER, offsetof(T, confirm_timeout), "SECONDS", 0.1, 86400, "60",         \
     "time limit for an answer; then the answer is no", NULL, .show = OPTION_MORE}

/* double settle_min, settle_quiet, settle_max, key_delay, keymap_settle, NAN if not given, the last 50;
 * UNLESS: another source of the values, as "; default: as in the run". */
#define PACE_OPTIONS(T, UNLESS)                                                                              \
    {"settle-quiet", 0, OPTION_NUMBER, offsetof(T, settle_quiet), "MS", 0, 60000, NULL,                      \
     "time without changes after which the screen counts as settled; default: 300, and up to 700 more "      \
     "after a click that has changed nothing but the look of the clicked element, or an action that has "    \
     "left placeholders or blank space in place of content" UNLESS,                                          \
     NULL},                                                                                                  \
    {"settle-min", 0, OPTION_NUMBER, offsetof(T, settle_min), "MS", 0, 60000, NULL,                          \
     "minimum wait for the screen after an action; default: 150, or --settle-quiet if that is less" UNLESS,  \
     NULL, .show = OPTION_MORE},                                                                             \
    {"settle-max", 0, OPTION_NUMBER, offsetof(T, settle_max), "MS", 0, 600000, NULL,                         \
     "maximum wait for the screen; default: 3000, or 2700 more than --settle-quiet if that is more" UNLESS,  \
     NULL, .show = OPTION_MORE},                                                                             \
    {"key-delay", 0, OPTION_NUMBER, offsetof(T, key_delay), "MS", 0, 1000, NULL,                             \
     "pause between typed characters; default: none in programs that confirm that they have read their "     \
     "keys, else 5" UNLESS, NULL},                                                                           \
    {"keymap-settle", 0, OPTION_NUMBER, offsetof(T, keymap_settle), "MS", 0, 5000, "50",                     \
     "pause after borrowing keycodes" UNLESS, "HOLORUN_KEYMAP_SETTLE", .show = OPTION_SWITCH}

/* int think_early; */
#define THINK_EARLY_OPTION(T)                                                                                \
    {"think-early", 0, OPTION_CHOICE, offsetof(T, think_early), "auto|yes|no", 0, 0, "auto",                 \
     "let the model begin while the screen may still change, and begin again if it does; auto: if the model "\
     "runs in this process, unless it needed less than 20 ms for the last step", NULL, .show = OPTION_MORE}

/* bool assist; */
#define ASSIST_OPTION(T)                                                                                     \
    {"assist", 0, OPTION_FLAG, offsetof(T, assist), NULL, 0, 0, "yes",                                       \
     "correct replies and positions of the embedded model by its other outputs; needs the model in this "    \
     "process", NULL, .show = OPTION_MORE}

/* const char *runs; */
#define RUNS_OPTION(T)                                                                                       \
    {"runs", 0, OPTION_TEXT, offsetof(T, runs), "DIR", 0, 4096, NULL,                                        \
     "folder of runs; default: in the user's state folder", "HOLORUN_RUNS"}

/* bool json, quiet; */
#define JSON_OPTION(T)  {"json", 'j', OPTION_FLAG, offsetof(T, json), .help = "one JSON object on stdout"}
#define QUIET_OPTION(T) {"quiet", 'q', OPTION_FLAG, offsetof(T, quiet), .help = "no progress on stderr"}
/* clang-format on */
