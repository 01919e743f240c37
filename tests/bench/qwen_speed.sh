#!/usr/bin/env bash
# Measures the speed of the Qwen3.5 family on this CPU; writes tests/results/qwen-speed.md.  Use a quiet machine.
#
#   qwen_speed.sh step [ROUNDS]    steps of the 0.8B and 4B with synthetic weights, full screen and 720 tokens, by parts
#   qwen_speed.sh peer [ROUNDS]    the 0.8B's shape compared with llama.cpp (bench_gguf.py), one interleaved round at a time
#   qwen_speed.sh table            writes the table of all measurements so far
#
# Measurements are stored in DIR (default build/qwen-speed), so a call can be interrupted and repeated; PYTHON is an
# interpreter with numpy, gguf and xllamacpp.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=${DIR:-build/qwen-speed} python=${PYTHON:-python3}
mkdir -p "$dir"

# Measures a step: model, pixels, further options.
step() { # $1 name, then the options of bench
    local name=$1 load
    shift
    load=$(cut -d' ' -f1 /proc/loadavg)
    ./holorun bench --section step --json -r 1 "$@" 2>"$dir/log" |
        python3 -c 'import json, sys; print(json.dumps({"load": float(sys.argv[1]), "rows": [json.loads(l) for l in sys.stdin if l[:1] == "{"]}))' "$load" >>"$dir/step-$name.jsonl"
    tail -1 "$dir/step-$name.jsonl" | cut -c1-200
}

steps() {
    step 0.8b-full --random qwen3.5-0.8b --max-pixels 2088960
    step 0.8b-720 --random qwen3.5-0.8b --max-pixels 737280
    step 0.8b-full-int8 --random qwen3.5-0.8b --max-pixels 2088960 --activations int8
    step 0.8b-720-int8 --random qwen3.5-0.8b --max-pixels 737280 --activations int8
    step 4b-720 --random qwen3.5-4b --max-pixels 737280 --weights int4
    step 4b-720-int8 --random qwen3.5-4b --max-pixels 737280 --weights int4 --activations int8
    [ -n "${BRIEF:-}" ] || step 4b-full --random qwen3.5-4b --max-pixels 2088960 --weights int4
}

peers() {
    "$python" tests/bench/bench_gguf.py ./holorun --form BF16 --rounds 1 --log "$dir/peer-BF16.jsonl" --folder "$dir/gguf"
    "$python" tests/bench/bench_gguf.py ./holorun --form Q8_0 --activations bf16 --rounds 1 --log "$dir/peer-Q8_0.jsonl" --folder "$dir/gguf"
    [ -n "${BRIEF:-}" ] || "$python" tests/bench/bench_gguf.py ./holorun --form Q8_0 --activations int8 --rounds 1 --log "$dir/peer-Q8_0-int8.jsonl" --folder "$dir/gguf"
}

case ${1:-} in
step) for ((i = 0; i < ${2:-1}; i++)); do steps; done ;;
peer) for ((i = 0; i < ${2:-1}; i++)); do peers; done ;;
table) ;;
*) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
python3 tests/bench/qwen_speed.py "$dir" >"$dir/table.md"
cp "$dir/table.md" tests/results/qwen-speed.md
