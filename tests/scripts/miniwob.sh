#!/usr/bin/env bash
# Fetches the pages of MiniWoB++ (MIT) from the package index for tests/suites/miniwob.yaml.
#
#   miniwob.sh                     fetches and prepares them in build/qa/miniwob, unless they exist
#   miniwob.sh suite [N [FIRST]]   prints the suite: every page of pages.txt with N seeds (20) from FIRST (1000000)
#
# Each page gets one additional script (tests/suites/miniwob/episode.js) and is otherwise unchanged. The task of a page
# depends only on its seed. The suite contains these tasks, and each test waits for a page with exactly its own. Seeds
# from 1000000 are for evaluation and never used in training; those from 900000 are for checks during training.
set -euo pipefail
cd "$(dirname "$0")/../.."
at=build/qa/miniwob
from=tests/suites/miniwob
version=1.1.0
hash=297006e84219d56ad037e843527ed773a4a82509dc43b6031ec4a3ad3e3e61d9

# Prints "page steps" lines: the pages of the suite and the steps that each needs.
list() { sed 's/ *#.*//; /^$/d' "$from/pages.txt"; }

# Fonts affect both the layout and the model that reads it, so they must be the same on each machine.
fonts() {
    local asked family wanted wrong=0
    command -v fc-match >/dev/null || { echo "miniwob.sh: fc-match is not there (Debian: fontconfig)" >&2; exit 3; }
    while IFS=: read -r asked wanted; do
        family=$(fc-match -f '%{family[0]}' "$asked")
        [ "$family" = "$wanted" ] && continue
        echo "miniwob.sh: $asked is drawn in '$family' here, not in '$wanted'" >&2
        wrong=1
    done <<'EOF'
Arial:Liberation Sans
Times New Roman:Liberation Serif
Monospace:DejaVu Sans Mono
EOF
    [ "$wrong" = 0 ] || { echo "miniwob.sh: figures of other fonts say nothing (Debian: fonts-liberation, fonts-dejavu-core)" >&2; exit 3; }
}

prepare() {
    [ -e "$at/$version" ] && cmp -s "$from/episode.js" "$at/html/episode.js" && return
    rm -rf "$at"
    mkdir -p "$at/wheel"
    echo "miniwob==$version --hash=sha256:$hash" >"$at/wheel/wanted"
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r "$at/wheel/wanted" \
        -d "$at/wheel" || { echo "miniwob.sh: cannot fetch the package miniwob $version; is the package index reachable?" >&2; exit 3; }
    python3 -m zipfile -e "$at"/wheel/*.whl "$at/wheel"
    mv "$at/wheel/miniwob/html" "$at/html"
    rm -rf "$at/wheel"
    sed -i 's#</head>#<script src="../episode.js"></script>\n</head>#' "$at"/html/miniwob/*.html
    cp "$from/episode.js" "$from/tasks.html" "$at/html/"
    touch "$at/$version"
}

# Prints "page TAB seed TAB task" lines, from one browser that shows all pages.
sentences() {
    local pages sandbox=() profile
    pages=$(list | cut -d' ' -f1 | paste -sd,)
    profile=$(mktemp -d)
    [ "$(id -u)" -eq 0 ] && sandbox=(--no-sandbox)
    chromium --headless "${sandbox[@]}" --user-data-dir="$profile" --disable-gpu --disable-dev-shm-usage \
        --allow-file-access-from-files --timeout=600000 --virtual-time-budget=600000 --dump-dom \
        "file://$PWD/$at/html/tasks.html?pages=$pages&first=$2&seeds=$1" 2>/dev/null |
        sed -n 's/.*<body>\(.*\)<\/body>.*/\1/p' | base64 -d
    rm -rf "$profile"
}

suite() {
    local -A steps=()
    local page seed task
    while read -r page seed; do steps[$page]=$seed; done < <(list)
    cat "$from/head.yaml"
    sentences "$1" "$2" | while IFS=$'\t' read -r page seed task; do
        [ -n "$task" ] || { echo "miniwob.sh: page '$page' with seed $seed asks for nothing" >&2; exit 1; }
        case $task in *[{}\\]*) echo "miniwob.sh: page '$page' with seed $seed says what a suite would read otherwise: $task" >&2; exit 1 ;; esac
        task=$(printf '%s' "$task" | sed "s/'/''/g") # in YAML's single quotes only the quote is special
        printf -- "- { id: %s-%s, seed: %s, tags: [%s], steps: %s, vars: { page: %s, says: '%s' }, task: '{says}' }\n" \
            "$page" "$seed" "$seed" "$page" "${steps[$page]}" "$page" "$task"
    done
}

fonts
prepare
[ "${1:-}" = suite ] && suite "${2:-20}" "${3:-1000000}"
exit 0
