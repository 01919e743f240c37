#!/usr/bin/env bash
# Drives holorun against servers that others wrote: `transformers serve`, and with LLAMA=1 the one that
# llama-cpp-python brings, which pip builds in 20 minutes. Each serves a tiny model with random weights:
# what it says is noise, so that only protocol and endings are judged. Installs both with pip below
# build/peers; PYTHON chooses another interpreter that has them, GGUF the model for llama.cpp.
# Usage: peers_serve.sh [HOLORUN]; the table goes to stdout, exchanges.jsonl of a run to build/peers.
set -euo pipefail
cd "$(dirname "$0")/../.."
holorun=${1:-$PWD/holorun}
place=$PWD/build/peers
port=${PORT:-18190}
bad=0
mkdir -p "$place"
if [ -z "${PYTHON:-}" ]; then
    python3 -m venv "$place/venv"
    PYTHON=$place/venv/bin/python
    "$PYTHON" -m pip install -q 'transformers[serving]' torch pillow fastapi uvicorn openai
    [ -z "${LLAMA:-}" ] || "$PYTHON" -m pip install -q 'llama-cpp-python[server]'
fi
[ -e "$place/tiny/config.json" ] || "$PYTHON" tests/scripts/peers_model.py "$place/tiny"
"$PYTHON" -c "from PIL import Image; Image.new('RGB', (640, 480), (200, 200, 200)).save('$place/a.png')"
export XDG_STATE_HOME=$place/state HF_HUB_OFFLINE=1 HF_HOME=$place/hf
mkdir -p "$HF_HOME/hub" # or it cannot list its models

# check NAME WANTED-CODES COMMAND...: the exit code is one of those, and what went wrong is one line
check() {
    local name=$1 wanted=$2 code=0
    shift 2
    timeout 300 "$@" >"$place/out" 2>"$place/err" || code=$?
    if [[ " $wanted " == *" $code "* ]]; then
        printf 'ok      %-44s exit %s\n' "$name" "$code"
    else
        printf 'FAILED  %-44s exit %s: %s\n' "$name" "$code" "$(tail -1 "$place/err")"
        bad=1
    fi
}

drive() {
    local peer=$1 url=http://127.0.0.1:$port/v1 model=$2
    check "$peer: doctor" "0" "$holorun" doctor --base-url "$url" -m "$model"
    cat "$place/out"
    check "$peer: ask" "0 5" "$holorun" ask "What is this?" --base-url "$url" -m "$model" --max-tokens 16
    check "$peer: ask, with a picture" "0 5" "$holorun" ask "What is this?" "$place/a.png" --base-url "$url" -m "$model" --max-tokens 16
    check "$peer: calibrate" "0 5" "$holorun" calibrate --base-url "$url" -m "$model" --targets 8 --no-steps -q --dialect holo3
    Xvfb -displayfd 3 -screen 0 640x480x24 3>"$place/display" 2>/dev/null &
    local server=$!
    until [ -s "$place/display" ]; do sleep 0.1; done
    # Noise is no step: the run ends as one whose model says nothing usable, after its attempts.
    check "$peer: run" "0 4 5 6" "$holorun" run "Press Save" --base-url "$url" -m "$model" --display ":$(cat "$place/display")" \
        --max-steps 2 --reply-tokens 24 --runs "$place/runs" --quiet
    local run
    run=$(find "$place/runs" -name exchanges.jsonl -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)
    check "$peer: the same run from its record" "0 3 4 5 6" "$holorun" run "Press Save" --base-url "recorded:$run" \
        --display ":$(cat "$place/display")" --max-steps 2 --reply-tokens 24 --runs "$place/again" --quiet
    cp "$run" "$place/$peer.jsonl"
    kill $server
    wait $server 2>/dev/null || true
}

# serve COMMAND...: starts a server and waits until it lists its models
serve() {
    "$@" >"$place/serve.log" 2>&1 &
    peer_pid=$!
    for _ in $(seq 300); do
        curl -sf -o /dev/null "http://127.0.0.1:$port/v1/models" && return
        kill -0 $peer_pid 2>/dev/null || { tail -3 "$place/serve.log"; exit 3; }
        sleep 1
    done
}
end() {
    kill $peer_pid
    wait $peer_pid 2>/dev/null || true
}

serve "$PYTHON" -m transformers.cli.transformers serve "$place/tiny" --host 127.0.0.1 --port "$port" --device cpu
drive transformers "$place/tiny"
end
if [ -n "${LLAMA:-}${GGUF:-}" ]; then
    serve "$PYTHON" -m llama_cpp.server --model "${GGUF:?a GGUF file}" --host 127.0.0.1 --port "$port" --n_ctx 16384
    drive llama "$GGUF"
    end
fi
exit $bad
