#!/usr/bin/env bash
# Types texts into eight kinds of program that stall while other layouts are loaded, kills runs at random moments while
# sticky keys, Caps Lock and Num Lock are set, and writes both results to tests/results/typing.md.
#
#   typing.sh [TEXTS] [KILLS]      TEXTS per program (default 25), KILLS in total (default 500)
#
# HOLORUN_TEST_SEED=1 repeats texts and moments. Programs that are not installed are listed as skipped.
set -uo pipefail
cd "$(dirname "$0")/../.."
texts=${1:-25} kills=${2:-500} dir=${B:-build/release}/tests
seed=${HOLORUN_TEST_SEED:-$(date +%s)}
rows=$(mktemp) line=$(mktemp)
trap 'rm -f "$rows" "$line"' EXIT
export HOLORUN_TEST_SEED=$seed
HOLORUN_TYPING_TEXTS=$texts HOLORUN_TYPING_RESULT=$rows "$dir/t_programs" | tee /dev/stderr | grep 'not installed' >"$rows.skipped"
typed=${PIPESTATUS[0]}
HOLORUN_STICKY_KILLS=$kills HOLORUN_STICKY_RESULT=$line "$dir/t_sticky" 'killed at any' >&2
killed=$?
{
    echo "# Typed text arrives, or is reported as unsure"
    echo
    echo "$(date -u '+%e %B %Y' | sed 's/^ //'), \`HOLORUN_TEST_SEED=$seed tests/scripts/typing.sh $texts $kills\`, $(nproc) cores" \
        "($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), Xvfb."
    echo
    echo "Each text is one to four of 18 pieces: ten scripts, combining marks, joined emoji, flags, signs. In two of three the"
    echo "program stalls for up to 5 s, in its event loop or as a stopped process; in one of three somebody loads another"
    echo "keyboard layout at a random moment. What arrived is what the program itself reports (tests/screen/t_programs.c)."
    echo
    echo "| program | texts | with a stall | with another layout | correct | reported as unsure | silently wrong | ms each |"
    echo "|---|---|---|---|---|---|---|---|"
    sort "$rows"
    sed 's/^ */Skipped: /' "$rows.skipped"
    echo
    echo "Runs killed at random moments while they type, drag or hold keys, with sticky and slow keys, Caps Lock, Num Lock, a"
    echo "locked Control and a latched Shift at random (tests/screen/t_sticky.c): $(cat "$line")."
} >tests/results/typing.md
rm -f "$rows.skipped"
[ "$typed" -eq 0 ] && [ "$killed" -eq 0 ]
