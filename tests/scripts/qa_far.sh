#!/usr/bin/env bash
# Runs a suite with the model in the same process, and again with desktops here and the model behind `holorun serve`.
# The verdicts must be equal, and so must the exports for training: each token, and its log-probability within the
# rounding of the activations. The first run has --no-assist: the assist needs the model in the process.
#
#   qa_far.sh [SUITE.yaml] [JOBS] [other options of qa]      default: tests/suites/waits.yaml (40 tests), 8
#
# PLACE=DIR keeps results and exports there, for rollouts_check.py. F32=1 computes in f32: each log-probability must
# then be equal to 0.001. In bf16 their mean difference is bounded, but not that of a token between two almost equally
# probable ones: prompts are prefilled in other pieces, and each division rounds the states of the layers differently.
#
# Sampling is greedy, so the result is deterministic. Prints times and verdicts of both, and tests that differ; exit
# code 1 if there are any.
set -euo pipefail
cd "$(dirname "$0")/../.."
holorun=${HOLORUN:-./holorun}
suite=${1:-tests/suites/waits.yaml}
jobs=${2:-8}
shift $(($# < 2 ? $# : 2))
[ -z "${F32:-}" ] || export HOLORUN_F32=yes
place=${PLACE:-$(mktemp -d)}
mkdir -p "$place"
server=
trap '[ -z "$server" ] || kill $server; wait; [ -n "${PLACE:-}" ] || rm -rf "$place"' EXIT

suite() {
    local out=$1 begun=$SECONDS code=0
    shift
    "$holorun" qa "$suite" --jobs "$jobs" --out "$out" --temperature 0 --quiet "$@" >"$out.log" 2>&1 || code=$?
    [ -e "$out/results.json" ] || { tail -3 "$out.log"; exit 3; }
    jq -r '.tests[] | "\(.id) \(.outcome)"' "$out/results.json" | sort >"$out.verdicts"
    printf '%-34s %4d s, exit %s, %s\n' "$(basename "$out")" $((SECONDS - begun)) "$code" \
        "$(cut -d' ' -f2 "$out.verdicts" | sort | uniq -c | awk '{ printf "%s%s %s", s, $1, $2; s = ", " }')"
}

suite "$place/here" --no-assist "$@"
"$holorun" serve --listen 127.0.0.1:0 --token-file "$place/token" >"$place/address" 2>"$place/serve.log" &
server=$!
until [ -s "$place/address" ]; do
    kill -0 $server
    sleep 0.1
done
suite "$place/there" --base-url "$(cat "$place/address")" --key "file:$place/token" "$@"
diff "$place/here.verdicts" "$place/there.verdicts" && echo "the same verdicts of $(wc -l <"$place/here.verdicts") tests"

export_all() {
    local run form id
    for run in "$place/$1"/runs/*/*/; do
        id=$(basename "$(dirname "$run")")
        for form in verl atif; do
            "$holorun" export "$run" --format $form --output "$place/$1.exports/$form/$id" \
                --reward "$(grep -q "^$id passed$" "$place/$1.verdicts" && echo 1 || echo 0)" >/dev/null
        done
    done
}
export_all here
export_all there
python3 - "$place/here.exports/verl" "$place/there.exports/verl" "${F32:-}" <<'END'
import glob, json, os, sys

here, there, f32 = sys.argv[1:]
tokens, total, most = 0, 0.0, 0.0
for folder in sorted(os.listdir(here)):
    a, b = ([json.loads(line) for line in open(os.path.join(x, folder, "outputs.jsonl"))] for x in (here, there))
    assert len(a) == len(b), folder
    for x, y in zip(a, b):
        for key in ("prompt_ids", "response_ids", "response_mask", "multi_modal_data", "reward_score", "num_turns"):
            assert x[key] == y[key], (folder, key)
        assert x["extra_fields"]["sampler"] == y["extra_fields"]["sampler"] and x["extra_fields"]["sampler"]["weights"]
        off = [abs(p - q) for p, q in zip(x["response_logprobs"], y["response_logprobs"])]
        tokens, total, most = tokens + sum(x["response_mask"]), total + sum(off), max([most, *off])
assert sorted(os.listdir(here)) == sorted(os.listdir(there)) and tokens
told = f"log-probabilities differ by {total / tokens:.6f} on average and {most:.6f} at most"
assert most < 0.001 if f32 else total / tokens < 0.002, told
print(f"equal exports: {tokens} chosen tokens; {told}")
END
