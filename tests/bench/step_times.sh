#!/usr/bin/env bash
# Prints how long actions take, from the settled screen to the executed action, according to the runs' own records.
#
#   step_times.sh RUN/events.jsonl ...
awk 'function number(key) { return match($0, "\"" key "\": [0-9.]+") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) : 0 }
     /"kind": "observe"/ { seen[FILENAME, number("step")] = number("t_mono_ns") / 1e6 - number("capture_ms") }
     /"kind": "exec"/ { print number("t_mono_ns") / 1e6 - seen[FILENAME, number("step")] }' "$@" |
    sort -n | awk '{ ms[NR] = $1 } END { if (NR) printf "%d actions, each from settled screen to done: median %.0f ms, 95 of 100 below %.0f ms\n",
                   NR, ms[int((NR + 1) / 2)], ms[int(NR * 0.95 + 0.5)] }'
