#!/usr/bin/env bash
# Runs test programs in random order and closes with "N passed, N failed, N skipped".
#
#   run_tests.sh DIR [NAME ...]        DIR holds the built t_* programs; NAMEs narrow the choice
#
# Each program's output goes to DIR/NAME.log and is shown: claims as they pass, everything when one
# fails.  A program that crashes, hangs (HOLORUN_TEST_TIMEOUT, 300 s) or reports nothing counts as one failure.
set -uo pipefail
dir=$1
shift
seed=${HOLORUN_TEST_SEED:-$(date +%s)}
export HOLORUN_TEST_SEED=$seed
limit=${HOLORUN_TEST_TIMEOUT:-300}
# Of a build with sanitizers: what libraries never free is not ours.  Programs that tests start inherit it.
export LSAN_OPTIONS="suppressions=$(cd "$(dirname "$0")/.." && pwd)/lsan.supp:print_suppressions=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}"
passed=0 failed=0 skipped=0

programs=()
for p in "$dir"/t_*; do
    [ -x "$p" ] && [ ! -d "$p" ] || continue
    [ $# -eq 0 ] || [[ " $* " == *" $(basename "$p") "* ]] || continue
    programs+=("$p")
done
order=$(printf '%s\n' "${programs[@]}" | shuf --random-source=<(yes "$seed"))

echo "seed $seed (HOLORUN_TEST_SEED=$seed repeats this order)"
for p in $order; do
    name=$(basename "$p") log=$p.log start=$(date +%s%N)
    timeout -k 5 "$limit" "$p" >"$log" 2>&1
    rc=$?
    ok=$(grep -c '^\[       OK \]' "$log")
    skip=$(grep -c '^\[  SKIPPED \]' "$log")
    # cmocka repeats skipped and failed names in a summary; the summary's own count is the truth.
    summary() { sed -n "s/^\[  $1 \] \([0-9][0-9]*\) test(s).*/\1/p" "$log" | tail -n 1; }
    bad=$(summary 'FAILED ') nskip=$(summary 'SKIPPED')
    bad=${bad:-0} skip=${nskip:-$skip}
    if [ "$rc" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    if [ "$rc" -eq 0 ] && [ $((ok + skip)) -eq 0 ]; then bad=1; fi
    took=$((($(date +%s%N) - start) / 100000000))
    printf '== %s: %d ok, %d failed, %d skipped (%d.%d s)%s\n' "$name" "$ok" "$bad" "$skip" $((took / 10)) $((took % 10)) \
        "$([ "$rc" -eq 124 ] && echo ", stopped after $limit s")"
    if [ "$bad" -gt 0 ]; then
        cat "$log"
    else
        sed -n -e 's/^\[       OK \]/   ok /p' -e 's/^\[  SKIPPED \] \([^0-9].*\)/   skipped \1/p' -e '/^           /p' "$log"
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
