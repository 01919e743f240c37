#!/usr/bin/env bash
# Runs whole episodes with the embedded model, scored by the pages.
#
#   demo_many.sh [CASES]      default tests/cases/demo_many.tsv
#
# CASES has one episode per line: kind, page with its query, task, pattern for the final window title (tab-separated; #
# starts a comment). A page is right only if its title matches. OUT=FILE writes one line per episode (kind, right,
# steps, seconds, exit code, title, task); RUNS=DIR keeps the run directories.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/scripts/desktop.sh
cases=${1:-tests/cases/demo_many.tsv}
out=${OUT:-/dev/null}
runs=${RUNS:-$(mktemp -d)}
mkdir -p "$runs"
declare -A total right
: >"$out"

number=0 count=$(grep -cv '^#' "$cases")
while IFS=$'\t' read -r kind page task want; do
    [[ -n "$kind" && "$kind" != \#* ]] || continue
    number=$((number + 1))
    desktop_start 640x480 || exit 3
    first='^(Flights|DIALOG)'
    desktop_page "file://$PWD/assets/demo/$page" "$first" || exit 3
    start=$(date +%s%N)
    result=$(./holorun run --confirm yes-to-all --quiet --json --no-report --runs "$runs" --max-steps 16 --max-time 120 "$task" 2>"$runs/stderr")
    code=$?
    tenths=$((($(date +%s%N) - start) / 100000000)) seconds=$((tenths / 10)).$((tenths % 10))
    title=$(desktop_title)
    steps=$(printf '%s' "$result" | sed -n 's/.*"steps": *\([0-9]*\).*/\1/p' | head -n 1)
    ok=no
    printf '%s' "$title" | grep -qE -- "$want" && ok=yes
    desktop_stop
    total[$kind]=$((${total[$kind]:-0} + 1))
    [ $ok = yes ] && right[$kind]=$((${right[$kind]:-0} + 1))
    printf '[%d/%d] %-8s %-3s %2s steps %5.1f s  %s\n' "$number" "$count" "$kind" "$ok" "${steps:-?}" "$seconds" "$task" >&2
    [ $ok = yes ] || printf '         title: %s\n' "$title" >&2
    printf '%s\t%s\t%s\t%.1f\t%d\t%s\t%s\n' "$kind" $ok "${steps:-}" "$seconds" $code "$title" "$task" >>"$out"
done <"$cases"

printf '%-16s %5s %5s\n' kind right of
for kind in $(printf '%s\n' "${!total[@]}" | sort); do
    printf '%-16s %5d %5d\n' "$kind" "${right[$kind]:-0}" "${total[$kind]}"
done

tests/bench/step_times.sh "$runs"/*/events.jsonl
[ -n "${RUNS:-}" ] || rm -rf "$runs"
