#!/usr/bin/env bash
# Runs a suite with the model in the same process, and again with desktops here and the model behind `holorun serve`.
# The verdicts must be equal.
#
#   qa_far.sh [SUITE.yaml] [JOBS] [other options of qa]      default: tests/suites/waits.yaml (40 tests), 8
#
# Sampling is greedy, so the result is deterministic. Prints times and verdicts of both, and tests that differ; exit
# code 1 if there are any.
set -euo pipefail
cd "$(dirname "$0")/../.."
holorun=${HOLORUN:-./holorun}
suite=${1:-tests/suites/waits.yaml}
jobs=${2:-8}
shift $(($# < 2 ? $# : 2))
place=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill $server; wait; rm -rf "$place"' EXIT

suite() {
    local out=$1 begun=$SECONDS code=0
    shift
    "$holorun" qa "$suite" --jobs "$jobs" --out "$out" --temperature 0 --quiet "$@" >"$out.log" 2>&1 || code=$?
    [ -e "$out/results.json" ] || { tail -3 "$out.log"; exit 3; }
    jq -r '.tests[] | "\(.id) \(.outcome)"' "$out/results.json" | sort >"$out.verdicts"
    printf '%-34s %4d s, exit %s, %s\n' "$(basename "$out")" $((SECONDS - begun)) "$code" \
        "$(cut -d' ' -f2 "$out.verdicts" | sort | uniq -c | awk '{ printf "%s%s %s", s, $1, $2; s = ", " }')"
}

suite "$place/here" "$@"
"$holorun" serve --listen 127.0.0.1:0 --token-file "$place/token" >"$place/address" 2>"$place/serve.log" &
server=$!
until [ -s "$place/address" ]; do
    kill -0 $server
    sleep 0.1
done
suite "$place/there" --base-url "$(cat "$place/address")" --key "file:$place/token" --dialect pocket-wide "$@"
diff "$place/here.verdicts" "$place/there.verdicts" && echo "the same verdicts of $(wc -l <"$place/here.verdicts") tests"
