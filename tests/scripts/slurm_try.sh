#!/usr/bin/env bash
# Runs a suite as an array job of Slurm on three nodes of this machine and kills one node in the middle.
#
#   slurm_try.sh [SUITE.yaml [SHARDS]]     default: tests/suites/waits.yaml (40 tests), 6
#
# The suite runs once without Slurm, then as `sbatch --array`. A node is a slurmd with its own name. Killing a node also
# kills all processes on it (found by their environment), as a power failure would. That happens when a shard on it has
# some results. Slurm then requeues the task after two minutes, and --resume-shard continues after its last result.
# Sampling is greedy: the merged report must have the verdicts of the single machine.
#
# Needs root (slurmd starts jobs) and Debian's slurm-wlm and munge, which it installs; it runs private copies of their
# daemons, with files in build/slurm and ports 17817 to 17823. Prints a table, and writes it to
# tests/results/fleet-slurm.md. Exit code 1: verdicts differ, or no task was requeued.
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=${1:-tests/suites/waits.yaml} shards=${2:-6}
holorun=$(realpath "${HOLORUN:-./holorun}")
at=$PWD/build/slurm
nodes=(n1 n2 n3)
declare -A pid=()

[ "$(id -u)" -eq 0 ] || { echo "slurm_try.sh: slurmd needs root" >&2; exit 3; }
command -v slurmctld slurmd sbatch munged jq >/dev/null || tests/scripts/install.sh slurm
rm -rf "$at"
mkdir -p "$at"/{home,state,spool}
chmod 700 "$at"
export SLURM_CONF=$at/slurm.conf HOME=$at/home

# ---- cluster ------------------------------------------------------------------------------------------

stop_all() {
    local p
    trap - EXIT
    for p in "${nodes[@]}"; do lose_node "$p" 2>/dev/null || true; done
    for p in "${pid[@]}"; do kill -KILL "$p" 2>/dev/null || true; done
    wait 2>/dev/null || true
}
trap stop_all EXIT

start_munge() {
    dd if=/dev/urandom of="$at/munge.key" bs=128 count=1 status=none
    chmod 600 "$at/munge.key"
    munged --foreground --force --key-file="$at/munge.key" --socket="$at/munge.sock" --pid-file="$at/munge.pid" \
        --log-file="$at/munge.log" --seed-file="$at/munge.seed" 2>"$at/munge.err" &
    pid[munge]=$!
    until [ -S "$at/munge.sock" ]; do kill -0 ${pid[munge]}; sleep 0.1; done
}

configure() {
    local host
    host=$(hostname -s)
    cat >"$SLURM_CONF" <<CONF
ClusterName=try
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$at/munge.sock
StateSaveLocation=$at/state
SlurmdSpoolDir=$at/spool/%n
SlurmctldPidFile=$at/slurmctld.pid
SlurmdPidFile=$at/slurmd.%n.pid
SlurmctldLogFile=$at/slurmctld.log
SlurmdLogFile=$at/slurmd.%n.log
SlurmctldPort=17817
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SlurmdTimeout=6
ReturnToService=2
JobRequeue=1
KillWait=2
NodeName=n[1-3] NodeHostname=$host NodeAddr=127.0.0.1 Port=[17821-17823] CPUs=2
PartitionName=all Nodes=n[1-3] Default=YES State=UP
CONF
}

start_node() {
    SLURM_TRY_NODE=$1 slurmd -D -N "$1" >"$at/$1.out" 2>&1 &
    pid[$1]=$!
}

marked() { grep -lsz "^$1\$" /proc/[0-9]*/environ | cut -d/ -f3; }

# Kills the daemons first, so that they cannot report the end of a job (a job's parent is its slurmstepd, which hides
# its environment); then their children, including desktops.
lose_node() {
    local p parent found=1
    for p in $(marked "SLURM_TRY_NODE=$1"); do kill -KILL "$p" 2>/dev/null || true; done
    for p in $(marked "SLURMD_NODENAME=$1"); do
        parent=$(awk '/^PPid/ { print $2 }' "/proc/$p/status" 2>/dev/null) || continue
        [[ $(cat "/proc/$parent/comm" 2>/dev/null) = slurmstepd ]] && kill -KILL "$parent"
    done
    while [ -n "$found" ]; do
        found=
        for p in $(marked "SLURMD_NODENAME=$1"); do kill -KILL "$p" 2>/dev/null && found=1; done
    done
}

start_cluster() {
    local n
    start_munge
    configure
    slurmctld -D >"$at/slurmctld.out" 2>&1 &
    pid[slurmctld]=$!
    for n in "${nodes[@]}"; do start_node "$n"; done
    for ((n = 0; n < 60; n++)); do
        [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c idle)" = 3 ] && return
        sleep 1
    done
    sinfo -N -l >&2 || true
    tail -5 "$at"/*.log >&2
    echo "slurm_try.sh: the nodes did not come up" >&2
    exit 3
}

# ---- array job ----------------------------------------------------------------------------------------

verdicts() { jq -r '.tests[] | "\(.id) \(.outcome)"' "$1/results.json" | sort; }
counts() { verdicts "$1" | cut -d' ' -f2 | sort | uniq -c | awk '{ printf "%s%s %s", s, $1, $2; s = ", " }'; }
greedy=(--temperature 0 --quiet)

submit() {
    cat >"$at/shard.sh" <<JOB
#!/bin/bash
echo "shard \$SLURM_ARRAY_TASK_ID on \$SLURMD_NODENAME, start \$((\${SLURM_RESTART_COUNT:-0} + 1))"
exec "$holorun" qa "$PWD/$suite" --shard auto --resume-shard --out "$at/\$SLURM_ARRAY_TASK_ID" --jobs 2 --temperature 0
JOB
    sbatch --parsable --requeue --array=1-"$shards" -c 2 --open-mode=append -o "$at/%a.log" "$at/shard.sh"
}

# Prints the node of a shard that has some results.
busy_node() {
    local task node
    while read -r task node; do
        jq -e '(.tests | map(select(.attempts | length > 0)) | length) as $n | $n > 0 and $n < (.tests | length) - 1' \
            "$at/$task/results.json" >/dev/null 2>&1 && { echo "$task $node"; return; }
    done < <(squeue -h -r -j "$1" -t R -o '%K %N')
}

run_array() {
    local job lost="" task rest
    job=$(submit)
    while ! rest=$(squeue -h -r -j "$job" -t PD,R,CF,CG,RQ 2>/dev/null) || [ -n "$rest" ]; do
        if [ -z "$lost" ] && read -r task lost < <(busy_node "$job") && [ -n "$lost" ]; then
            lose_node "$lost"
            echo "node $lost was killed with shard $task half done" | tee "$at/lost"
        fi
        sleep 0.5
    done
}

begun=$SECONDS
echo "== one machine" >&2
"$holorun" qa "$suite" --out "$at/alone" --jobs 2 "${greedy[@]}" >"$at/alone.log" 2>&1 || true
alone_s=$((SECONDS - begun)) begun=$SECONDS
echo "== three nodes, $shards shards" >&2
start_cluster
run_array
array_s=$((SECONDS - begun)) code=0
folders=()
for ((i = 1; i <= shards; i++)); do folders+=("$at/$i"); done
"$holorun" qa merge --out "$at/merged" "${folders[@]}" >"$at/merged.log" 2>&1 || code=$?
same=no
diff <(verdicts "$at/alone") <(verdicts "$at/merged") >"$at/differences" && same=yes
"$holorun" qa merge --out "$at/short" "${folders[@]:1}" >/dev/null 2>"$at/short.log" && short=0 || short=$?
{
    echo "Slurm $(sinfo -V | cut -d' ' -f2), three nodes on one machine ($(nproc) cores), $(date -u +%Y-%m-%d), $suite in $shards shards: \`tests/scripts/slurm_try.sh\`"
    echo
    echo "| | tests | verdicts | exit | s |"
    echo "|---|---|---|---|---|"
    echo "| one machine | $(verdicts "$at/alone" | wc -l) | $(counts "$at/alone") | | $alone_s |"
    echo "| array job, merged | $(verdicts "$at/merged" | wc -l) | $(counts "$at/merged") | $code | $array_s |"
    echo "| array job without shard 1, merged | $(jq '.tests | length' "$at/short/results.json") | $(counts "$at/short") | $short | |"
    echo
    echo "- $(cat "$at/lost" 2>/dev/null || echo 'no node was lost')"
    for ((i = 1; i <= shards; i++)); do
        [ "$(grep -c '^shard .* start' "$at/$i.log")" -gt 1 ] || continue
        echo "- shard $i: $(grep '^shard .* start' "$at/$i.log" | sed 's/^shard [0-9]* //' | paste -sd';' | sed 's/;/; /g'); $(grep -m1 -o '[0-9]* of [0-9]* tests have results' "$at/$i.log" || echo 'no results from before')"
    done
    echo "- the merged report has the same verdicts as one machine: $same"
    echo "- $(grep -m1 -o 'shard 1 of .*' "$at/short.log" || true): exit code $short"
} | tee tests/results/fleet-slurm.md
[ "$same" = yes ] && [[ $short = [15] ]] && grep -q 'shard 1 of .* is missing' "$at/short.log" && grep -q 'start 2$' "$at"/*.log
