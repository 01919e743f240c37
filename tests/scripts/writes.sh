#!/usr/bin/env bash
# Performs write actions in eight kinds of program next to four busy loops, and writes the result to tests/results/writes.md.
#
#   writes.sh [WRITES]      WRITES per program (default 63)
#
# HOLORUN_TEST_SEED=1 repeats texts and moments. All programs run at the same time, each on its own display. Programs that
# are not installed are listed as skipped.
set -uo pipefail
cd "$(dirname "$0")/../.."
writes=${1:-63} dir=${B:-build/release}/tests
seed=${HOLORUN_TEST_SEED:-$(date +%s)}
rows=$(mktemp -d)
for i in 1 2 3 4; do
    while :; do :; done &
    loops[i]=$!
done
trap 'kill "${loops[@]}" 2>/dev/null; rm -rf "$rows"' EXIT
export HOLORUN_TEST_SEED=$seed HOLORUN_WRITES=$writes HOLORUN_WRITES_RESULT=$rows/rows
for name in 'GTK 3' 'GTK 4' Qt Tk Swing Firefox Chromium xterm; do
    "$dir/t_writes" "writes into $name are" >"$rows/$name.log" 2>&1 &
    tests+=($!)
done
failed=0
for pid in "${tests[@]}"; do wait "$pid" || failed=1; done
load=$(cut -d' ' -f1-3 /proc/loadavg)
cat "$rows"/*.log >&2
{
    echo "# Writes into real programs"
    echo
    echo "$(date -u '+%e %B %Y' | sed 's/^ //'), \`HOLORUN_TEST_SEED=$seed tests/scripts/writes.sh $writes\`, $(nproc) cores" \
        "($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), Xvfb, openbox;" \
        "load at the end $load."
    echo
    echo "A write is a click into the field and a text of 1 to 20 words (in browsers up to 60 bytes), ASCII and Latin accents, at the end of the text of the write"
    echo "before or over it. Four busy loops run beside it, and all programs at the same time. In one of three the program is stopped"
    echo "for 300 ms (SIGSTOP) within the write. The program itself reports the content of its field (tests/screen/t_writes.c)."
    echo
    echo "| program | writes | with a stop | right | unsure or refused | wrong and reported as done | median ms |"
    echo "|---|---|---|---|---|---|---|"
    sort "$rows/rows"
    sed -n 's/^ *\(.* is not installed\)$/\nSkipped: \1./p' "$rows"/*.log
    echo
    echo "The times are those of an overloaded machine. A dialog that opens at the click gets none of the text in Tk, GTK 3, Qt and"
    echo "Swing: the same program tests it. Refused: \"the target changed just before the press\", nothing was typed. Tk has no ping here (8.6), so
its waits are the fixed ones."
} >tests/results/writes.md
[ "$failed" -eq 0 ]
