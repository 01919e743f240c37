#!/usr/bin/env bash
# Runs test programs in parallel and in random order; ends with "N passed, N failed, N skipped".
#
#   run_tests.sh DIR [NAME ...]        DIR holds the built t_* programs; NAMEs select some of them
#
#   HOLORUN_TEST_JOBS=8         programs at a time (default: twice the cores and 4, since most tests wait more than they compute)
#   HOLORUN_TEST_SEED=1         repeats an order
#   HOLORUN_TEST_ROUNDS=1       runs of each program until one fails, each with the next seed
#   HOLORUN_TEST_TIMEOUT=600    seconds for each run of a program
#   HOLORUN_TEST_NOT_BUILT=''   programs that this build lacks, each counted as skipped
#   HOLORUN_TEST_RETRIES=0      failed programs that may be run again (default: 3)
#
# A program's output goes to DIR/NAME.log. After its end the passed tests are listed, or the whole log if one failed. A
# program that crashes, hangs or reports nothing counts as one failure, and so does one that leaves a process behind, or
# a run that leaves a file in a shared place; each is named. TMPDIR is a private folder of the program.
#
# When at most three programs have failed, each is run once more, alone. The second result counts; a program that then
# passes is named as flaky, and the log of its first run is DIR/NAME.first.log. Some tests watch other people's programs
# by the clock, and a machine that stops for a second fails them. A crash, a report of a sanitizer, a time-out or a
# leftover process is never repeated.
set -uo pipefail

# Compares times with limits: it runs when all others have ended.
alone="t_observed_cost"
# These took longest beside others (55 s and more on two cores), and start first.
long="t_bench t_cuda_bench t_cuda_faults t_cuda_fp8 t_cuda_gguf t_cuda_graph t_cuda_kv8 t_cuda_linear t_cuda_memory
      t_cuda_model t_cuda_opening t_cuda_qwen t_cuda_sample t_cuda_scheduler t_cuda_speculate t_cuda_ssm t_cuda_state
      t_disturbed t_endings t_eval_program t_expected t_grabs t_injections t_layers t_observed t_overwrite
      t_plain_live t_programs t_qa t_qa_freeze t_qa_steps t_qwen t_qwen_full t_qwen_run t_record t_record_keys
      t_remote_faults t_writes"

dir=$1
shift
seed=${HOLORUN_TEST_SEED:-$(date +%s)}
export HOLORUN_TEST_SEED=$seed
limit=${HOLORUN_TEST_TIMEOUT:-600}
rounds=${HOLORUN_TEST_ROUNDS:-1}
jobs=${HOLORUN_TEST_JOBS:-$((2 * $(nproc) + 4))}
retries=${HOLORUN_TEST_RETRIES:-3}
patience=100 # tenths of a second in which what a test has started may come to its end
# Of a build with sanitizers: what libraries never free is not ours.  Programs that tests start inherit it.
export LSAN_OPTIONS="suppressions=$(cd "$(dirname "$0")/.." && pwd)/lsan.supp:print_suppressions=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}"
passed=0 failed=0 skipped=0 count=0
room=/tmp/holorun.$$ # short, because socket paths begin with it; contains the pid
mkdir -m 700 "$room" || exit 1

# ---- leftovers -----------------------------------------------------------------------------------------------------

# Lists processes whose environment names the folder of a program, or of any of them ($1: "$room/").
left_processes() {
    grep -lzsE "^HOLORUN_TEST_PROGRAM=$1" /proc/[0-9]*/environ | cut -d/ -f3
}

# Lists files of the program and its tests in shared places.
shared() {
    ls -d /tmp/holorun-desks-* /tmp/holorun-$UID /tmp/.X*-lock /tmp/.X11-unix/X* /tmp/server-*.xkm \
        /dev/shm/*holorun* 2>/dev/null
    find "$HOME"/.cache/holorun "$HOME"/.config/holorun "$HOME"/.local/{share,state}/holorun -maxdepth 2 2>/dev/null
}

# Returns whether a running process of another origin uses the file.
in_use() {
    case $1 in
    /tmp/.X11-unix/*) grep -q "[ @]$1\$" /proc/net/unix ;;
    /tmp/.X*-lock) [ -d "/proc/$(($(cat "$1" 2>/dev/null)))" ] ;;
    /tmp/holorun-desks-*) ! flock -n "$1/lock" true ;;
    *) false ;;
    esac
}

# Fails for each leftover file; removes sockets of killed servers.
check_left() {
    local path
    while read -r path; do
        [ -e "$path" ] && [ -O "$path" ] && ! in_use "$path" || continue
        case $path in
        /tmp/.X11-unix/*) rm -f "$path" ;;
        *)
            echo "left: $path"
            failed=$((failed + 1))
            ;;
        esac
    done < <(comm -13 "$room/before" <(shared | sort))
}

# ---- one program ---------------------------------------------------------------------------------------------------

# Runs program $1 in folder $2, once or several times; its log names the seed of each run. nohup ignores the signal HUP, and
# shells ignore INT and QUIT in background jobs, which programs keep: tests that send them, and terminals, need them.
run_rounds() {
    local i rc=0
    for ((i = 0; i < rounds && rc == 0; i++)); do
        HOLORUN_TEST_SEED=$((seed + i)) HOLORUN_TEST_PROGRAM=$2 TMPDIR=$2 timeout -k 5 "$limit" \
            env --default-signal=HUP,INT,QUIT "$dir/$1" || rc=$?
    done
    return $rc
}

# Runs a program and writes $room/NAME.report: passed, failed and skipped, then the output to show.
run() {
    local name=$1 place=$room/$2 log=$dir/$1.log took rc ok bad nskip skip left i again=yes
    local TIMEFORMAT='%1R s, %1U s user, %1S s system'
    mkdir "$place"
    took=$( { time run_rounds "$name" "$place" >"$log" 2>&1 </dev/null; } 2>&1)
    rc=$?
    for ((i = 0; i < patience; i++)); do
        left=$(left_processes "$place\$")
        [ -n "$left" ] || break
        sleep 0.1
    done
    ok=$(grep -c '^\[       OK \]' "$log")
    skip=$(grep -c '^\[  SKIPPED \]' "$log")
    # cmocka repeats skipped and failed names in a summary; the summary's count is right. cmocka 2 begins it with a name.
    summary() { sed -n "s/^\[  $1 \] \(.*: \)\{0,1\}\([0-9][0-9]*\) test(s).*/\2/p" "$log" | tail -n 1; }
    bad=$(summary 'FAILED ') nskip=$(summary 'SKIPPED')
    bad=${bad:-0} skip=${nskip:-$skip}
    if [ "$rc" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    if [ "$rc" -eq 0 ] && [ $((ok + skip)) -eq 0 ]; then bad=1; fi
    if [ "$rc" -ge 124 ] || grep -qE 'Sanitizer|runtime error:' "$log"; then again=no; fi
    if [ -n "$left" ]; then
        again=no
        bad=$((bad + 1))
        { echo "left: processes" && ps -o pid=,args= -p "${left//$'\n'/,}"; } >>"$log"
        kill -KILL $left 2>/dev/null
    fi
    {
        echo "$ok $bad $skip $again"
        printf '== %s: %d ok, %d failed, %d skipped (%s)%s\n' "$name" "$ok" "$bad" "$skip" "$took" \
            "$([ "$rc" -eq 124 ] && echo ", stopped after $limit s")"
        if [ "$bad" -gt 0 ]; then
            cat "$log"
        else
            sed -n -e 's/^\[       OK \]/   ok /p' -e 's/^\[  SKIPPED \] \([^0-9].*\)/   skipped \1/p' -e '/^           /p' "$log"
        fi
    } >"$room/$name.report"
    chmod -R u+rwX "$place" 2>/dev/null
    rm -rf "$place"
}

declare -A names=() # of running programs, by process id
declare -A broken=() # failed programs: their numbers of failed tests
reap() {
    local pid name ok bad skip again
    wait -n -p pid
    name=${names[$pid]}
    { read -r ok bad skip again && cat; } <"$room/$name.report"
    [ "$bad" -eq 0 ] || broken[$name]="$ok $bad $skip $again"
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    unset "names[$pid]"
}

# Runs the NAMEs, at most $1 at a time.
run_all() {
    local at_a_time=$1 name
    shift
    for name; do
        [ ${#names[@]} -lt "$at_a_time" ] || reap
        run "$name" "$count" &
        names[$!]=$name
        count=$((count + 1))
    done
    while [ ${#names[@]} -gt 0 ]; do reap; done
}

# Runs failed programs again, one at a time; the second result replaces the first.
run_again() {
    local name ok bad skip again flaky=() names_left=("${!broken[@]}")
    [ ${#names_left[@]} -le "$retries" ] || return
    for name in "${names_left[@]}"; do
        read -r ok bad skip again <<<"${broken[$name]}"
        [ "$again" = yes ] || continue
        passed=$((passed - ok)) failed=$((failed - bad)) skipped=$((skipped - skip))
        unset "broken[$name]"
        mv "$dir/$name.log" "$dir/$name.first.log"
        echo "$name failed and is run again"
        run_all 1 "$name"
        [ -n "${broken[$name]:-}" ] || flaky+=("$name")
    done
    [ ${#flaky[@]} -eq 0 ] || echo "flaky, passed at the second attempt: ${flaky[*]}"
}

end() {
    local left
    left=$(left_processes "$room/")
    [ -z "$left" ] || kill -KILL $left 2>/dev/null
    rm -rf "$room"
}

# ---- main ----------------------------------------------------------------------------------------------------------

trap end EXIT
trap 'exit 130' INT TERM HUP
first=() middle=() last=()
while read -r name; do
    if [[ " $alone " == *" $name "* ]]; then
        last+=("$name")
    elif [[ " ${long//$'\n'/ } " == *" $name "* ]]; then
        first+=("$name")
    else
        middle+=("$name")
    fi
done < <(for p in "$dir"/t_*; do
    [ -x "$p" ] && [ ! -d "$p" ] || continue
    [ $# -eq 0 ] || [[ " $* " == *" ${p##*/} "* ]] || continue
    echo "${p##*/}"
done | shuf --random-source=<(yes "$seed"))

shared | sort >"$room/before"
echo "seed $seed (HOLORUN_TEST_SEED=$seed repeats this order), $jobs at a time"
rm -f "$dir"/*.first.log
set -m # tests get signals as from a terminal
for name in ${HOLORUN_TEST_NOT_BUILT:-}; do
    echo "== $name: skipped, this build lacks the library of its feature"
    skipped=$((skipped + 1))
done
run_all "$jobs" "${first[@]}" "${middle[@]}"
run_all 1 "${last[@]}"
run_again
check_left
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
