/* replay.h - settings of `holorun replay`, shared with cmd/replay_actions.c. */
#pragma once

#include "base/err.h"
#include "cli/shared_options.h"
#include "trace/read.h"

#include <stddef.h>

struct replay_settings {
    MODEL_SETTINGS;
    const char *runs, *dialect;
    bool verify, json, quiet, actions, cursor, dry_run, observe_only, report, redact_frames;
    const char *secrets[OPTION_LIST_MAX + 1], *hide[OPTION_LIST_MAX + 1];
    const char *display, *view, *policy, *confirm;
    int from, to;
    double threshold, speed, settle_min, settle_quiet, settle_max, key_delay, keymap_settle, confirm_timeout;
};

/* Performs the recorded actions and prints the outcome.  Returns the exit code. */
int replay_actions(const struct replay_settings *s, const struct record *r);
