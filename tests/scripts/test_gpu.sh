#!/usr/bin/env bash
# Runs the kernel tests on the GPU, then again under compute-sanitizer if it is installed.
#
#   test_gpu.sh DIR        DIR holds t_cuda_* linked with the kernels (make test-gpu builds them)
#
#   HOLORUN_TEST_ROUNDS=10     repetitions with new random cases
#   SANITIZER_SECONDS=300      limit of each program under compute-sanitizer
#
# The tests read tensors from the host, so memory is managed (HOLORUN_CUDA_MANAGED), each operation is synchronized, and
# kernels are chosen as for a GPU with few processors: small sizes then take every path that those of a model take.
set -uo pipefail
dir=$1
here=$(dirname "$0")
export HOLORUN_CUDA_MANAGED=1
nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader
HOLORUN_TEST_JOBS=1 HOLORUN_TEST_ROUNDS=${HOLORUN_TEST_ROUNDS:-10} HOLORUN_TEST_TIMEOUT=${HOLORUN_TEST_TIMEOUT:-600} \
    "$here/run_tests.sh" "$dir" || exit 1

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
if [ -z "$sanitizer" ]; then
    echo "compute-sanitizer is not installed: left out"
    exit 0
fi
export HOLORUN_TEST_ROUNDS=1
failed=0
check() { # TOOL PROGRAM
    local log=$dir/$2.$1.log rc=0
    timeout -k 5 "${SANITIZER_SECONDS:-300}" "$sanitizer" --tool "$1" --error-exitcode 9 "$dir/$2" >"$log" 2>&1 || rc=$?
    case $rc in
    0) echo "$1 $2: nothing found" ;;
    124) echo "$1 $2: stopped after ${SANITIZER_SECONDS:-300} s, nothing found until then" ;;
    *)
        echo "$1 $2: exit $rc"
        tail -n 40 "$log"
        failed=1
        ;;
    esac
}
for program in t_cuda_ops t_cuda_linear t_cuda_blocks t_cuda_moe t_cuda_ssm t_cuda_stochastic_round t_cuda_attend t_cuda_synthetic t_cuda_sample t_cuda_preprocess; do
    check memcheck "$program"
done
for tool in racecheck synccheck; do # slow: each kernel once, with few numbers
    for program in t_cuda_ops t_cuda_linear t_cuda_moe t_cuda_ssm t_cuda_attend; do
        check "$tool" "$program"
    done
done
exit $failed
