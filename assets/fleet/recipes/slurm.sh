#!/usr/bin/env bash
# Slurm: an array job with 16 elements on a shared folder.
#
#   sbatch slurm.sh                  all elements; then: holorun qa merge /shared/results --out /shared/merged
#   sbatch --array=7 slurm.sh        one element again: those of its tests that have no result
#   FRESH=1 sbatch --array=7 slurm.sh    all of its tests
#SBATCH --array=1-16
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
set -euo pipefail
shards=16 # that of --array; an element that is repeated alone does not know it
out=/shared/results/$SLURM_ARRAY_TASK_ID
[ -z "${FRESH:-}" ] || [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || rm -rf "$out"
exec holorun qa /shared/suite.yaml --shard "$SLURM_ARRAY_TASK_ID/$shards" --resume-shard --out "$out" --jobs 4
