#!/usr/bin/env bash
# Measures what decides the predictions of cuda/README.md on a GPU, then runs the kernel tests, all in at most ten minutes.
# The largest times of all measurements sum to 580 s, and the tests keep 60 s: if many parts need theirs, or after a
# build, the last parts are cut off or not begun. Always writes DIR/DATE-CARD.json and .md, unless the build fails.
#
#   card.sh            (make card)
#
#   LIMIT=600          total seconds; parts are stopped at their own limits (below)
#   HOLORUN=PROGRAM    a program that was built elsewhere for this GPU; nothing is built then
#   DEVICE=cuda        cuda:1: the second GPU
#   RESULTS, SIZES, REPEAT: see bench_gpu.sh
#
# Build for a machine without nvcc: make CUDA=1 CARDS=90 holorun gpu-tests, strip -o /tmp/holorun holorun; copy that
# program and this tree. The result files name the parts that did not fit into the time. The exit code is 1 if a part or
# a test failed.
set -uo pipefail
cd "$(dirname "$0")/../.."
limit=${LIMIT:-600} began=$SECONDS B=${B:-build/release} holorun=${HOLORUN:-./holorun} sizes=${SIZES:-holotron-12b}
device=${DEVICE:-cuda} index=0 failed=0
[ "$device" = cuda ] || index=${device#cuda:}
left() { echo $((limit - (SECONDS - began))); }
# Runs a command for at most $1 seconds and the time that is left; `timeout 0` would not limit it. Fails with 124.
limited() {
    local most=$1 rest
    rest=$(left)
    shift
    [ "$rest" -gt 15 ] || return 124
    timeout $((most < rest ? most : rest)) "$@"
}

capability=$(nvidia-smi -i "$index" --query-gpu=compute_cap --format=csv,noheader | tr -d .)
[ -n "$capability" ] || { echo "no card $index: 'nvidia-smi' lists none" >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
note() { echo "$*" | tee -a "$work/notes"; }

# An existing build is reused. The kernel tests are linked like the program.
if [ -z "${HOLORUN:-}" ]; then
    start=$SECONDS
    if limited "$limit" make -s -j"$(nproc)" CUDA=1 CARDS="$capability" holorun gpu-tests >"$work/make" 2>&1; then
        note "built for sm_$capability in $((SECONDS - start)) s"
    else
        tail -n 30 "$work/make"
        echo "card.sh: it does not build" >&2
        exit 1
    fi
fi

# Counters of a kernel (ncu): stalls by reason, bytes and sectors of the cache. $1: kernel, $2: row of the benchmark.
# The check at opening launches each of these kernels up to 10 times with small sizes; a row launches it 48 times or more.
counters="sm__throughput.avg.pct_of_peak_sustained_elapsed,dram__throughput.avg.pct_of_peak_sustained_elapsed"
for reason in no_instruction long_scoreboard barrier wait; do
    counters+=",smsp__average_warps_issue_stalled_${reason}_per_issue_active.ratio"
done
counters+=",lts__t_bytes.sum,lts__t_sectors_op_write.sum,gpu__time_duration.sum"
find_tool() { command -v "$1" || ls /usr/local/cuda/bin/"$1" 2>/dev/null; }
count() {
    local rc=0
    limited 35 "$ncu" --clock-control none --launch-skip 40 --launch-count 1 -k "regex:$1" --csv --metrics \
        "$counters" "$holorun" bench --device "$device" --random "$sizes" --section kernels --only "$2" --repeat 2 \
        >"$work/ncu" 2>&1 || rc=$?
    grep -q '^"[0-9]' "$work/ncu" || note "counters of $1: none, ncu ended with $rc: $(tail -n 1 "$work/ncu")"
    sed -n 's/^"[0-9].*","\([a-z_.A-Z0-9]*\)","\([^"]*\)","\([^"]*\)"$/\1 \3 \2/p' "$work/ncu" |
        while read -r line; do note "counters of $1 in $2: $line"; done
}
measure_counters() {
    ncu=$(find_tool ncu) || { note "counters: ncu is not installed" && return; }
    count mma_gemv "Mamba in 1x"
    count dequantize "MLP up, f8 128x"
    count flash_attention "attend tile"
}

# Each kernel of one decode step (nsys), by its share of the time.
measure_nodes() {
    local nsys rc=0
    nsys=$(find_tool nsys) || { note "a step by kernel: nsys is not installed" && return; }
    limited 60 "$nsys" profile --cuda-graph-trace=node -o "$work/step" --force-overwrite=true \
        "$holorun" bench --device "$device" --random "$sizes" --section fleet --only "1 session after" --repeat 1 \
        >"$work/nsys" 2>&1 || rc=$?
    [ "$rc" -eq 0 ] || note "a step by kernel: nsys ended with $rc: $(tail -n 1 "$work/nsys")"
    "$nsys" stats --report cuda_gpu_kern_sum --format csv "$work/step.nsys-rep" 2>/dev/null | grep -E '^[0-9]' | head -n 25 |
        cut -d, -f1-4,9- | while read -r line; do note "kernels of a session's steps: $line"; done
}

measure_counters
measure_nodes

# Seconds, weights, section and rows of each part of the benchmark.
export PARTS="20|auto|kernels|MLP up
70|auto|kernels|Holotron
30|auto|kernels|scan
35|auto|fleet|1 session after
35|fp8+kv8|fleet|1 session after
50|auto|fleet|100 sessions after
55|fp8+kv8|fleet|100 sessions after
30|auto|fleet|tiles,
30|fp8|fleet|tiles,
60|fp8+kv8|fleet|100 sessions:"
REPEAT=${REPEAT:-2} LIMIT=$(($(left) - 60)) NOTES=$work/notes DEVICE=$device tests/bench/bench_gpu.sh "$holorun" || failed=1

# The tests read tensors from the host: managed memory (test_gpu.sh).
if [ -d "$B/gpu" ] && [ "$(left)" -gt 30 ]; then
    CUDA_VISIBLE_DEVICES="$index" HOLORUN_CUDA_MANAGED=1 HOLORUN_TEST_ROUNDS=1 HOLORUN_TEST_RETRIES=0 HOLORUN_TEST_JOBS=4 HOLORUN_TEST_TIMEOUT=90 \
        limited "$limit" tests/scripts/run_tests.sh "$B/gpu" >"$work/tests" 2>&1 || failed=1
    grep -E '^left: |^== .* [1-9][0-9]* failed|^\[  FAILED  \] [^0-9]|^[0-9]+ passed' "$work/tests" | sort -u
fi
echo "card.sh: $((SECONDS - began)) s"
exit $failed
