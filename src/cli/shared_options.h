/* shared_options.h - rows of option tables (options.h) that several commands share: which model, which screen, what
 * an agent is asked for.
 *
 * Above each stand the fields that T, a command's settings, has for it.
 */
#ifndef HOLORUN_CLI_SHARED_OPTIONS_H
#define HOLORUN_CLI_SHARED_OPTIONS_H

#include "cli/loading.h"
#include "cli/options.h"

/* clang-format off */
/* const char *model, *device, *isa; int threads, hold, weights, state, kv; bool weight_cache; size_t state_memory; */
#define MODEL_OPTIONS(T)                                                                                     \
    {"model", 'm', OPTION_TEXT, offsetof(T, model), "DIR", 0, 4096, NULL,                                    \
     "model directory in the published layout; without it the model that comes with holorun", "HOLORUN_MODEL"}, \
    {"threads", 0, OPTION_INT, offsetof(T, threads), "N", 0, 256, "0",                                       \
     "threads for the model, 0 for one on every core", "HOLORUN_THREADS"},                                   \
    {"device", 0, OPTION_TEXT, offsetof(T, device), "auto|cpu|cuda[:N]", 0, 32, "auto",                       \
     "where the model runs: a GPU if there is one that has room for it, the processor, or that GPU",            \
     "HOLORUN_DEVICE"},                                                                                       \
    {"isa", 0, OPTION_TEXT, offsetof(T, isa), "ref|avx2|avx512|avx512bf16", 0, 32, NULL,                                           \
     "instruction set of the kernels, \"ref\" for the plain reference; the best one without it", NULL},         \
    WEIGHTS_OPTIONS(T),                                                                                      \
    STATE_OPTION(T),                                                                         \
    {"state-memory", 0, OPTION_SIZE, offsetof(T, state_memory), "SIZE", 0, 0, NULL,                           \
     "memory that the states of conversations may take, as 24G; on a GPU what the weights leave of its own, and "  \
     "idle ones go to the host's", "HOLORUN_STATE_MEMORY"},                                                   \
    {"weight-cache", 0, OPTION_FLAG, offsetof(T, weight_cache), NULL, 0, 0, "yes",                           \
     "keep what int8, int4 and fp8 have made in a file, so that the next start need not make it again",       \
     "HOLORUN_WEIGHT_CACHE"}

/* int hold, weights, kv; */
#define WEIGHTS_OPTIONS(T)                                                                                   \
    {"weights", 0, OPTION_CHOICE, offsetof(T, weights), "auto|bf16|int8|int4|fp8", 0, 0, "auto",                 \
     "numbers that large matrices are held in: those of the checkpoint, or smaller ones made of them at the "  \
     "first start", "HOLORUN_WEIGHTS"},                                                                      \
    {"hold", 0, OPTION_CHOICE, offsetof(T, hold), "auto|packed|mapped", 0, 0, "auto",                        \
     "where they are: packed in memory at the start, mapped and read where they lie in the files, or packed "  \
     "when memory allows", "HOLORUN_HOLD"},                                                                  \
    {"kv", 0, OPTION_CHOICE, offsetof(T, kv), "auto|fp8", 0, 0, "auto",                                      \
     "numbers that keys and values of a conversation are kept in: those of the computation, or a byte each and "  \
     "a scale for each head of a token", "HOLORUN_KV"}

/* int state; */
#define STATE_OPTION(T)                                                                                      \
    {"state", 0, OPTION_CHOICE, offsetof(T, state), "fp32|fp16", 0, 0, "fp32",                          \
     "storage type of the recurrent state: fp16 takes half the memory, is rounded stochastically, and is refused "     \
     "where the model then answers differently", "HOLORUN_STATE"}

/* The same as engine_open wants them; S is one of T. */
#define MODEL_ENGINE(S)                                                                                      \
    {.dir = (S).model, .device = (S).device, .isa = (S).isa, .threads = (S).threads, .hold = (enum weights_in)(S).hold,           \
     .weights = (enum weight_storage)(S).weights, .cache = (S).weight_cache,                             \
     .state = (enum state_storage)(S).state, .kv = (enum kv_storage)(S).kv, .state_memory = (S).state_memory,                                                                       \
     .progress = loading_progress}

/* const char *display, *view; bool cursor; */
#define SCREEN_OPTIONS(T)                                                                                    \
    {"display", 'd', OPTION_TEXT, offsetof(T, display), "NAME", 0, 256, NULL, "X display to work on", "DISPLAY"}, \
    {"view", 'v', OPTION_TEXT, offsetof(T, view), "WHAT", 0, 256, "all",                                     \
     "what of it to look at: all, a monitor's name or number, or window:ID", NULL},                          \
    {"cursor", 0, OPTION_FLAG, offsetof(T, cursor), NULL, 0, 0, NULL, "show the pointer in screenshots", NULL}

/* const char *dialect; */
#define DIALECT_OPTION(T)                                                                                    \
    {"dialect", 0, OPTION_TEXT, offsetof(T, dialect), "NAME", 0, 4096, NULL,                                 \
     "how to speak to the model, a built-in name or a file; without it as the model's directory says", NULL}

/* bool f32; */
#define F32_OPTION(T) {"f32", 0, OPTION_FLAG, offsetof(T, f32), .help = "compute in f32 instead of bf16"}

/* bool localizer; int validator, max_validations; UNLESS: who else may say how many, as ", where ...". */
#define ASKED_ANEW_OPTIONS(T, UNLESS)                                                                        \
    {"localizer", 0, OPTION_FLAG, offsetof(T, localizer),                                                    \
     .help = "ask the model anew for the place of each element that it wants to click or write into, shown " \
             "nothing but the newest screenshot"},                                                           \
    {"validator", 0, OPTION_INT, offsetof(T, validator), "N", 0, 9, "0",                                     \
     "an answer counts only when the model, asked anew and shown the last screenshots, says N times in a row "  \
     "that the task was carried out" UNLESS "; else its reason goes back to the agent, which goes on", NULL}, \
    {"max-validations", 0, OPTION_INT, offsetof(T, max_validations), "N", 1, 100, "3",                       \
     "answers that --validator looks at before the agent has to end; a run has exit code 1 then", NULL}

/* int max_typed, max_rate, max_errors, max_repeats, max_still; */
#define LIMIT_OPTIONS(T)                                                                                     \
    {"max-typed", 0, OPTION_INT, offsetof(T, max_typed), "N", 0, 1e9, "0",                                   \
     "characters typed before the run ends, 0 for no limit", NULL},                                          \
    {"max-rate", 0, OPTION_INT, offsetof(T, max_rate), "N", 0, 6000, "0",                                    \
     "actions on the screen within a minute, with more of which the run ends, 0 for no limit", NULL},        \
    {"max-errors", 0, OPTION_INT, offsetof(T, max_errors), "N", 0, 1000, "5",                                \
     "steps in a row that cannot be done or are refused before the run ends, 0 for no limit", NULL},         \
    {"max-repeats", 0, OPTION_INT, offsetof(T, max_repeats), "N", 0, 1000, "5",                              \
     "times that one action in a row may change nothing to be seen before the run ends, 0 for no limit", NULL}, \
    {"max-still", 0, OPTION_INT, offsetof(T, max_still), "N", 0, 1000, "12",                                 \
     "the same of different actions", NULL}

/* const char *hide[OPTION_LIST_MAX + 1]; UNLESS: where else they are from. */
#define HIDE_OPTION(T, UNLESS)                                                                               \
    {"hide", 0, OPTION_LIST, offsetof(T, hide), "X,Y,WIDTH,HEIGHT", 0, 127, NULL,                            \
     "part of the root window, in pixels or % of it, that is painted over in what the model sees and in what is " \
     "recorded, as 0,0,100%,32; may be given several times" UNLESS, NULL}

/* const char *step; */
#define STEP_OPTION(T, MORE)                                                                                 \
    {"step", 0, OPTION_MAYBE, offsetof(T, step), "terminal|window|script:FILE", 0, 4096, NULL,               \
     "show each step before it runs, and ask: run it, change it, refuse it, decide again, go back; see holorun step" \
     MORE, NULL}

/* const char *breaks[OPTION_LIST_MAX + 1]; */
#define BREAK_OPTION(T)                                                                                      \
    {"break", 0, OPTION_LIST, offsetof(T, breaks), "WHEN", 0, 127, NULL,                                     \
     "with --step: run until this, more than once if need be: step 7, kind click, text PATTERN, window PATTERN, " \
     "irreversible, confidence 0.8, no-effect", NULL}

/* const char *policy, *confirm; double confirm_timeout; */
#define RULES_OPTIONS(T)                                                                                     \
    {"policy", 0, OPTION_TEXT, offsetof(T, policy), "FILE", 0, 4096, NULL,                                   \
     "rules on what may be done (see holorun policy); without it policy.yaml in the user's configuration folder " \
     "when there is one; the built-in rules follow", "HOLORUN_POLICY"},                                      \
    {"confirm", 0, OPTION_TEXT, offsetof(T, confirm), "HOW", 0, 4096, "auto",                                \
     "who is asked before what the rules want a person to confirm: tty, cmd:COMMAND (the question is JSON on its " \
     "stdin, exit code 0 is yes), never (the answer is no), yes-to-all (nobody is asked, all of it is done), or " \
     "auto: tty when there is a terminal, else never", "HOLORUN_CONFIRM"},                                   \
    {"confirm-timeout", 0, OPTION_NUMBER, offsetof(T, confirm_timeout), "SECONDS", 0.1, 86400, "60",         \
     "no answer within this time is no", NULL}

/* double settle_min, settle_quiet, settle_max, key_delay, keymap_settle; UNLESS: where else they are from, as
 * "; without it ...". */
#define PACE_OPTIONS(T, UNLESS)                                                                              \
    {"settle-min", 0, OPTION_NUMBER, offsetof(T, settle_min), "MS", 0, 60000, "150",                         \
     "shortest wait for the screen after an action" UNLESS, NULL},                                           \
    {"settle-quiet", 0, OPTION_NUMBER, offsetof(T, settle_quiet), "MS", 0, 60000, "300",                     \
     "quiet time that counts as settled" UNLESS, NULL},                                                      \
    {"settle-max", 0, OPTION_NUMBER, offsetof(T, settle_max), "MS", 0, 600000, "3000",                       \
     "longest wait for the screen" UNLESS, NULL},                                                            \
    {"key-delay", 0, OPTION_NUMBER, offsetof(T, key_delay), "MS", 0, 1000, "5",                              \
     "pause between typed characters" UNLESS, NULL},                                                         \
    {"keymap-settle", 0, OPTION_NUMBER, offsetof(T, keymap_settle), "MS", 0, 5000, "50",                     \
     "pause after borrowing keycodes" UNLESS, NULL}

/* const char *runs; */
#define RUNS_OPTION(T)                                                                                       \
    {"runs", 0, OPTION_TEXT, offsetof(T, runs), "DIR", 0, 4096, NULL,                                        \
     "folder of runs to look in; without it the user's state folder", "HOLORUN_RUNS"}

/* bool json, quiet, of commands that have no more to say of them. */
#define JSON_OPTION(T) {"json", 'j', OPTION_FLAG, offsetof(T, json), .help = "one JSON object on stdout"}
#define QUIET_OPTION(T)        {"quiet", 'q', OPTION_FLAG, offsetof(T, quiet), .help = "no progress on stderr"}
/* clang-format on */

#endif
