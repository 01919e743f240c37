#!/usr/bin/env bash
# Runs all checks that need a GPU, in at most eight minutes: builds for this GPU, runs the kernel tests, three of them
# under memcheck, then the fleet benchmark. Always writes DIR/DATE-CARD.json and .md.
#
#   card.sh            (make card)
#
#   LIMIT=480          total seconds; the benchmark gets the rest after building and testing
#   DEVICE=cuda        cuda:1: the second GPU
#   RESULTS, SIZES, WEIGHTS, REPEAT: see bench_gpu.sh
#
# The result files name the parts that did not fit into the time. The exit code is 1 if a test failed.
set -uo pipefail
cd "$(dirname "$0")/../.."
limit=${LIMIT:-480} began=$SECONDS B=${B:-build/release}
device=${DEVICE:-cuda} index=0 failed=0
[ "$device" = cuda ] || index=${device#cuda:}
left() { echo $((limit - (SECONDS - began))); }

capability=$(nvidia-smi -i "$index" --query-gpu=compute_cap --format=csv,noheader | tr -d .)
[ -n "$capability" ] || { echo "no card $index: 'nvidia-smi' lists none" >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
note() { echo "$*" | tee -a "$work/notes"; }

# The kernel tests are linked like the program. An existing build is reused.
start=$SECONDS
if timeout "$(left)" make -s -j"$(nproc)" CUDA=1 CARDS="$capability" holorun gpu-tests >"$work/make" 2>&1; then
    note "built for sm_$capability in $((SECONDS - start)) s"
else
    tail -n 30 "$work/make"
    echo "card.sh: it does not build" >&2
    exit 1
fi

# The benchmark gets half of the time.
start=$SECONDS
export HOLORUN_CUDA_MANAGED=1 HOLORUN_TEST_ROUNDS=1
half=$((limit / 2 - (SECONDS - began)))
timeout $((half > 60 ? half : 60)) env CUDA_VISIBLE_DEVICES="$index" HOLORUN_TEST_JOBS=4 HOLORUN_TEST_TIMEOUT=90 \
    HOLORUN_TEST_RETRIES=0 tests/scripts/run_tests.sh "$B/gpu" >"$work/tests" 2>&1
case $? in
0) ;;
124) note "the tests were stopped for want of time" && failed=1 ;;
*) failed=1 ;;
esac
grep -E '^== .* [1-9][0-9]* failed|^\[  FAILED  \] [^0-9]' "$work/tests" | sort -u | while read -r line; do note "$line"; done
note "tests on the card: $(grep -E '^[0-9]+ passed' "$work/tests" || echo 'no summary'), $((SECONDS - start)) s"

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
for program in t_cuda_ops t_cuda_ssm t_cuda_attend; do
    [ -n "$sanitizer" ] || { note "memcheck: compute-sanitizer is not installed" && break; }
    start=$SECONDS
    CUDA_VISIBLE_DEVICES=$index timeout -k 2 25 "$sanitizer" --tool memcheck --error-exitcode 9 "$B/gpu/$program" >"$work/$program" 2>&1
    case $? in
    0) note "memcheck $program: nothing found, $((SECONDS - start)) s" ;;
    124) note "memcheck $program: nothing found in 25 s, then stopped" ;;
    *)
        note "memcheck $program: $(grep -m1 -E '=========.*(Invalid|ERROR)' "$work/$program" || tail -n 1 "$work/$program")"
        failed=1
        ;;
    esac
done
unset HOLORUN_CUDA_MANAGED HOLORUN_TEST_ROUNDS

WEIGHTS=${WEIGHTS:-auto fp8+kv8 int8 fp8} REPEAT=${REPEAT:-2} LIMIT=$(left) NOTES=$work/notes DEVICE=$device \
    tests/bench/bench_gpu.sh ./holorun || failed=1
echo "card.sh: $((SECONDS - began)) s"
exit $failed
