#!/usr/bin/env bash
# Checks whether programs can be built for a GPU and run on one here: exit code 0, or one line and exit code 3.
#
#   gpu.sh NVCC        NVCC: the compiler that was found, or empty
set -uo pipefail
missing() {
    echo "no GPU run: $1" >&2
    exit 3
}
seen=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
[ "${seen:-0}" -gt 0 ] || missing "there is no NVIDIA GPU on this machine ('nvidia-smi -L' lists none); everything else is tested by 'make test'"
[ -n "${1:-}" ] || missing "there is a GPU, but no nvcc: install the CUDA toolkit, or name its compiler with NVCC=/usr/local/cuda/bin/nvcc"
