#!/usr/bin/env bash
# Makes N system calls and allocations of the program fail, one per run of a command, and writes the results to
# tests/results/injections.md.
#
#   injections.sh N BUILD        BUILD: the folder with tests/t_injections and helpers/inject.so
set -uo pipefail

n=$1
build=$2
page=tests/results/injections.md
log=$(mktemp)
trap 'rm -f "$log"' EXIT
HOLORUN_INJECTIONS=$n "$build"/tests/t_injections >"$log" 2>&1
rc=$?
{
    echo '# Injected failures'
    echo
    echo 'One system call or allocation of the program fails, at a random point of a random command (tests/inject). Afterwards'
    echo 'no key or button may be down and no keycode borrowed on the display, the files that were there must be the same, records'
    echo 'must be whole, exit code 0 must mean the undisturbed output, and every other end must have words.'
    echo
    echo "\`make injections N=$n\`, $(date -u '+%-d %B %Y'), $(nproc) cores ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)), $(git describe --always --dirty 2>/dev/null):"
    echo
    echo '```'
    grep -E '^ {11}|^seed|WRONG' "$log"
    echo '```'
} >"$page"
cat "$log"
exit $rc
