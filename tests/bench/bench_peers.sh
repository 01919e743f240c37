#!/usr/bin/env bash
# Compares holorun with llama.cpp on the same random weights, in turn for each kind of row: A B A B ...
#
#   bench_peers.sh HOLORUN PEER_MODEL        (make bench-peers builds both and calls this)
#
#   LLAMA_CPP=DIR    directory of llama-bench, llama-batched-bench and llama-mtmd-cli; default: PATH
#   ROUNDS=5         number of runs of each program; THREADS=2; ROWS='prompt decode 8bit tile': rows to measure
#   DEVICE=cuda      both on the GPU, llama.cpp built with GGML_CUDA=ON; adds rows for 100 sessions
#   PEERS=DIR        directory of the model (5.1 GB): ~/.cache/holorun/peers
#
# Nothing is downloaded; without llama.cpp the script prints a message and ends.  A row has the median of the rounds of each
# program (each of them the median of two or three runs), and the median, minimum and maximum of the ratios of neighbouring
# rounds; JSON lines follow.
# Both use the same number of threads, weights in bf16 and the state in f32; in the 8-bit rows every matrix is int8
# with a scale per row in holorun, Q8_0 in llama.cpp.  The prompts consist of different tokens, because llama-bench
# chooses random ones; in a dense model the time does not depend on them.
set -euo pipefail
holorun=$1 maker=$2
rounds=${ROUNDS:-5} threads=${THREADS:-2} rows=${ROWS:-prompt decode 8bit tile}
gpu=() layers=() many=16 context=4096
[ -z "${DEVICE:-}" ] || { gpu=(--device "$DEVICE") layers=(-ngl 99) many=16,100 context=20480; }
dir=${PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/holorun/peers}

find_tool() {
    local p
    for p in "${LLAMA_CPP:-}" "${LLAMA_CPP:-}/bin" "${LLAMA_CPP:-}/build/bin"; do
        if [ -n "${LLAMA_CPP:-}" ] && [ -x "$p/$1" ]; then echo "$p/$1"; return; fi
    done
    command -v "$1" || true
}
bench=$(find_tool llama-bench) batched=$(find_tool llama-batched-bench) eyes=$(find_tool llama-mtmd-cli)
if [ -z "$bench" ] || [ -z "$batched" ] || [ -z "$eyes" ]; then
    echo "bench-peers: no llama.cpp here: llama-bench, llama-batched-bench and llama-mtmd-cli are wanted on PATH or in"
    echo "             \$LLAMA_CPP; Nothing was compared."
    exit 0
fi
command -v jq >/dev/null || { echo "bench-peers: jq is missing" >&2; exit 3; }

if [ ! -f "$dir/complete" ] || [ ! -f "$dir/text-8bit.gguf" ]; then
    mkdir -p "$dir"
    free_kib=$(df -Pk "$dir" | awk 'NR == 2 { print $4 }')
    if [ "$free_kib" -lt 5900000 ]; then
        echo "bench-peers: the model takes 5.1 GB and '$dir' has $((free_kib / 1000000)) GB free; name another place with PEERS" >&2
        exit 3
    fi
    "$maker" "$dir" && touch "$dir/complete"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints lines "ROW RATE" with rates in tokens/s or tiles/s; $1: prompt, decode, 8bit or tile.
run_holorun() {
    local more='' options=(--section "peers-$1")
    [ "$1" != 8bit ] || more=', 8 bit' options=(--section peers-decode --weights int8)
    "$holorun" bench "${options[@]}" --model "$dir/model" --threads "$threads" "${gpu[@]}" --repeat 3 --json |
        jq -r 'select(.section == "peers") | "\(.name)\t\(.rate)\t\(.of_peak // 0)\t\(.of_memory // 0)"' |
        awk -F '\t' -v OFS='\t' -v more="$more" '
            /^prompt of 512 /  { print "prompt of 512 tokens", $2, $3 }
            /^prompt of 3328 / { print "prompt of 3328 tokens", $2, $3 }
            /^1 session /      { print "decode, 1 session" more, $2, $4 }
            /^16 sessions /    { print "decode, 16 sessions" more, $2, $4 }
            /^100 sessions /   { print "decode, 100 sessions" more, $2, $4 }
            /^one tile /       { print "tile of 512x512", $2, $3 }'
}

decode_llama() { # model, suffix of row names
    "$bench" -m "$1" -t "$threads" "${layers[@]}" -p 0 -n 32 -d 128 -r 3 -o jsonl 2>/dev/null |
        jq -r --arg more "$2" '"decode, 1 session\($more)\t\(.samples_ts | sort | (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2)"'
    "$batched" -m "$1" -t "$threads" "${layers[@]}" -c "$context" -npp 128 -ntg 32 -npl "$many" \
        --output-format jsonl 2>/dev/null |
        jq -Rr --arg more "$2" 'fromjson? | select(.speed_tg) | "decode, \(.pl) sessions\($more)\t\(.speed_tg)"'
}
run_llama() {
    case $1 in
    prompt)
        "$bench" -m "$dir/text.gguf" -t "$threads" "${layers[@]}" -p 512,3328 -n 0 -r 2 -o jsonl 2>/dev/null |
            jq -r '"prompt of \(.n_prompt) tokens\t\(.samples_ts | sort | (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2)"' ;;
    decode) decode_llama "$dir/text.gguf" '' ;;
    8bit) decode_llama "$dir/text-8bit.gguf" ', 8 bit' ;;
    tile)
        "$eyes" "${layers[@]}" -m "$dir/text.gguf" --mmproj "$dir/eyes.gguf" --image "$dir/tile.ppm" -p x -n 1 -t "$threads" \
            --chat-template chatml 2>&1 </dev/null |
            sed -n 's/.*encod[a-z]* \(done \)\{0,1\}in \([0-9][0-9]*\) ms.*/\2/p' | tail -n 1 |
            awk '$1 > 0 { printf "tile of 512x512\t%.6f\n", 1000 / $1 }' ;;
    esac
}

"$holorun" bench --section peak --threads "$threads" "${gpu[@]}"
for ((i = 1; i <= rounds; i++)); do
    echo "round $i of $rounds" >&2
    for row in $rows; do
        run_holorun "$row" | sed "s/^/$i\tholorun\t/" >>"$work/rates"
        run_llama "$row" | sed "s/^/$i\tllama\t/" >>"$work/rates"
    done
done

# Prints median, minimum and maximum of a column of numbers.
jq -Rn -r --arg threads "$threads" '
    def median: sort | if length % 2 == 1 then .[(length - 1) / 2] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
    [inputs | split("\t") | {round: .[0], who: .[1], row: .[2], rate: (.[3] | tonumber), limit: ((.[4] // "0") | tonumber)}] as $all
    | ["prompt of 512 tokens", "prompt of 3328 tokens", "decode, 1 session", "decode, 16 sessions",
       "decode, 100 sessions",
       "decode, 1 session, 8 bit", "decode, 16 sessions, 8 bit", "tile of 512x512"][] as $row
    | [$all[] | select(.row == $row)] as $mine
    | [$mine[] | select(.who == "holorun")] as $a
    | [$mine[] | select(.who == "llama")] as $b
    | select(($a | length) > 0 and ($b | length) > 0)
    | [$a[] as $x | $b[] | select(.round == $x.round) | $x.rate / .rate] as $ratios
    | {row: $row, threads: ($threads | tonumber), rounds: ($ratios | length),
       holorun: ([$a[].rate] | median), llama_cpp: ([$b[].rate] | median), of_limit: ([$a[].limit] | median),
       ratio: ($ratios | median), ratio_min: ($ratios | min), ratio_max: ($ratios | max)}
    | tojson' <"$work/rates" >"$work/json"

printf '%-26s %12s %12s %8s %15s %9s\n' 'per second' holorun llama.cpp ratio 'from to' 'of limit'
jq -r '[.row, .holorun, .llama_cpp, .ratio, .ratio_min, .ratio_max, .of_limit * 100] | @tsv' "$work/json" |
    awk -F '\t' '{ printf "%-26s %12.2f %12.2f %7.2fx %7.2f %7.2f %7.0f %%\n", $1, $2, $3, $4, $5, $6, $7 }'
cat "$work/json"
