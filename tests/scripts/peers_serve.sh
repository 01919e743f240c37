#!/usr/bin/env bash
# Runs holorun against third-party servers: `transformers serve`, and llama.cpp's own server from the package xllamacpp
# (or the one of llama-cpp-python, which pip builds for an hour). Both serve the same tiny model with random weights.
# Its replies are noise, so the checks cover protocol, constraint, stop conditions and one-line errors.
#
#   peers_serve.sh [HOLORUN]        prints a table; exit code 1 if a row of it failed
#   PEERS="transformers llama"      the servers to test
#   PYTHON=...                      an interpreter that has the packages; otherwise pip installs them
#   TORCH=torch==2.14.0             version of torch to install, instead of one for the CPU only
#   PATIENCE=600                    seconds per command
#   KEEP=tests/cases/peers          also stores the exchanges of a run with each, for tests without a server
set -euo pipefail
cd "$(dirname "$0")/../.."
holorun=${1:-$PWD/holorun}
place=${PLACE:-$PWD/build/peers}
port=${PORT:-18190}
bad=0
peer_pid=
trap '[ -z "$peer_pid" ] || kill "$peer_pid" 2>/dev/null || true' EXIT
mkdir -p "$place"
if [ -z "${PYTHON:-}" ]; then
    PYTHON=$place/venv/bin/python
    "$PYTHON" -m pip --version >/dev/null 2>&1 || python3 -m venv "$place/venv"
    # The CPU version of torch avoids gigabytes of GPU libraries, if pip finds it. Few modules are used, so none are
    # compiled.
    install() { "$PYTHON" -m pip install -q --no-compile "$@"; }
    install "${TORCH:-torch==2.13.0+cpu}" 2>/dev/null || install torch
    install 'transformers[serving]' pillow fastapi uvicorn openai gguf
    install --only-binary :all: xllamacpp || install 'llama-cpp-python[server]'
fi
[ -e "$place/tiny/config.json" ] || "$PYTHON" tests/scripts/peers_model.py "$place/tiny"
[ -e "$place/tiny/eyes.gguf" ] || "$PYTHON" tests/scripts/peers_gguf.py "$place/tiny"
"$PYTHON" -c "from PIL import Image; Image.new('RGB', (640, 480), (200, 200, 200)).save('$place/a.png')"
export XDG_STATE_HOME=$place/state HF_HUB_OFFLINE=1 HF_HOME=$place/hf
# The model is tiny: more threads would spend their time waiting for each other.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
mkdir -p "$HF_HOME/hub" # otherwise it cannot list its models
rm -rf "$place/state" "$place/runs" "$place/again" "$place/suite"

# row GOOD NAME TEXT: prints a line of the table
row() {
    printf '%-7s %-46s %s\n' "$([ "$1" = 0 ] && echo ok || echo FAILED)" "$2" "$3"
    [ "$1" = 0 ] || bad=1
}

# check NAME CODES COMMAND...: expects one of the exit codes, and at most one line of error
check() {
    local name=$1 wanted=$2 lines good=0
    shift 2
    code=0
    timeout "${PATIENCE:-600}" "$@" >"$place/out" 2>"$place/err" || code=$?
    lines=$(grep -c '^holorun: error' "$place/err" || true)
    [[ " $wanted " == *" $code "* ]] && [ "$lines" -le 1 ] || good=1
    row $good "$name" "exit $code$([ $good = 0 ] || printf ': %s' "$(tail -1 "$place/err")")"
}

# Checks that the replies of a run follow the schema, as far as their few tokens go; if not, doctor or the run must have
# reported it.
check_constraint() {
    local peer=$1 run=$2 said=$3 held all
    all=$(jq -r 'select(.status == 200) | .n' "$run" | wc -l)
    held=$(jq -r 'select(.status == 200) | [.reply | split("\n")[] | select(startswith("data: {")) | .[6:] | fromjson?
               | .choices[0].delta.content // ""] | add | select(test("^\\s*\\{")) | "x"' "$run" | wc -l)
    if [ "$all" -gt 0 ] && [ "$held" = "$all" ]; then
        row 0 "$peer: constraint" "honoured: all $all replies begin as the object of the schema"
    elif grep -qE 'constraint .*(ignored|refused)' "$place/doctor.out"; then
        row 0 "$peer: constraint" "not honoured; doctor says so, and none is sent"
    elif grep -q -e "does not enforce it" -e "replies are not constrained to the schema" "$said"; then
        row 0 "$peer: constraint" "not honoured, and reported"
    else
        row 1 "$peer: constraint" "not honoured, and nothing was said"
    fi
}

write_suite() {
    cat >"$place/suite.yaml" <<YAML
suite:
  name: peers
  display: xvfb:640x480
  start: exec "$PWD/build/release/helpers/form" "{page}"
  window: ^DIALOG pressed=
  start_timeout_s: 60
  wm: ""
  steps: 2
  timeout_s: 200
  checks:
    - { kind: window, title: '^DIALOG pressed=Yes', when: always }
tests:
  - { id: one, task: Press Yes, vars: { page: 'dialog.html?seed=1&kind=buttons&labels=Yes%7CNo' } }
  - { id: two, task: Press Yes, vars: { page: 'dialog.html?seed=2&kind=buttons&labels=No%7CYes%7CMaybe' } }
  - { id: three, task: Press Yes, vars: { page: 'dialog.html?seed=3&kind=buttons&labels=Yes' } }
YAML
}

# Each test must have a verdict, whatever it is, and reports must exist. Under a schema noise may reach any allowed
# length.
check_suite() {
    local peer=$1
    shift
    jq '.request.max_tokens = 150' "$(sed -n 's/.* kept  *//p' "$place/doctor.out")" >"$place/short.json"
    check "$peer: suite" "0 1 4 5" "$holorun" qa "$place/suite.yaml" --jobs 2 --profile "$place/short.json" --out "$place/suite" "$@"
    row "$([ "$(jq '.tests | length' "$place/suite/results.json")" = 3 ] && echo 0 || echo 1)" "$peer: suite, verdicts" \
        "$(jq -rc '[.tests[].outcome] | join(", ")' "$place/suite/results.json")"
    rm -rf "$place/suite"
}

newest() { mkdir -p "$1" && find "$1" -name exchanges.jsonl -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2; }

# A whole run on a private display, and the same run replayed from its record.
check_runs() {
    local peer=$1 run first server said=$place/run.err
    shift
    rm -f "$place/display"
    Xvfb -displayfd 3 -screen 0 640x480x24 3>"$place/display" 2>/dev/null &
    server=$!
    until [ -s "$place/display" ]; do sleep 0.1; done
    DISPLAY=:$(cat "$place/display")
    export DISPLAY
    check "$peer: run" "0 1 4 5 6 7" "$holorun" run "Press Save" "$@" --max-steps 3 --reply-tokens 150 --runs "$place/runs" --no-report
    cp "$place/err" "$said"
    first=$code run=$(newest "$place/runs")
    check_constraint "$peer" "$run" "$said"
    check "$peer: the same run from its record" "$first" "$holorun" run "Press Save" --base-url "recorded:$run" \
        --max-steps 3 --reply-tokens 150 --runs "$place/again" --no-report
    row "$([ "$(jq -c .reply "$run")" = "$(jq -c .reply "$(newest "$place/again")")" ] && echo 0 || echo 1)" \
        "$peer: its replies" "$(wc -l <"$run") exchanges, $(stat -c %s "$run") bytes"
    [ -z "${KEEP:-}" ] || { mkdir -p "$KEEP" && sed "s|$place|build/peers|g" "$run" >"$KEEP/$peer.jsonl" && echo "$first" >"$KEEP/$peer.code"; }
    kill $server
    wait $server 2>/dev/null || true
}

drive() {
    local peer=$1 model=$2
    local to=(--base-url "http://127.0.0.1:$port/v1" -m "$model")
    check "$peer: doctor" "0" "$holorun" doctor "${to[@]}"
    sed 's/^/        /' "$place/out"
    cp "$place/out" "$place/doctor.out"
    check "$peer: ask" "0 5" "$holorun" ask "What is this?" "${to[@]}" --max-tokens 16
    check "$peer: ask, with a picture" "0 5" "$holorun" ask "What is this?" "$place/a.png" "${to[@]}" --max-tokens 16
    check "$peer: calibrate" "0 5" "$holorun" calibrate "${to[@]}" --targets 8 --no-steps -q --dialect holo3
    check_runs "$peer" "${to[@]}"
    check_suite "$peer" "${to[@]}"
}

# serve COMMAND...: starts a server and waits until it lists its models
serve() {
    "$@" >"$place/serve.log" 2>&1 &
    peer_pid=$!
    for _ in $(seq 600); do
        curl -sf -o /dev/null "http://127.0.0.1:$port/v1/models" && return
        kill -0 $peer_pid 2>/dev/null || { tail -3 "$place/serve.log"; exit 3; }
        sleep 1
    done
}
end() {
    kill $peer_pid
    wait $peer_pid 2>/dev/null || true
    peer_pid=
}

write_suite
for peer in ${PEERS:-transformers llama}; do
    if [ "$peer" = transformers ]; then
        serve "$PYTHON" -m transformers.cli.transformers serve "$place/tiny" --host 127.0.0.1 --port "$port" --device cpu
        drive transformers "$place/tiny"
    elif "$PYTHON" -c 'import xllamacpp' 2>/dev/null; then
        serve "$PYTHON" tests/scripts/peers_llama.py "$place/tiny" "$port"
        drive llama tiny
    else
        serve "$PYTHON" -m llama_cpp.server --model "$place/tiny/text.gguf" --clip_model_path "$place/tiny/eyes.gguf" \
            --chat_format llava-1-5 --model_alias tiny --host 127.0.0.1 --port "$port" --n_ctx 16384
        drive llama tiny
    fi
    end
done
exit $bad
