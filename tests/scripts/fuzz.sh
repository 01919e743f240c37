#!/usr/bin/env bash
# fuzz.sh SECONDS PROGRAM ...   runs each libFuzzer program from tests/fuzz/seeds/NAME (fuzz_NAME);
# new inputs stay in build/fuzz; a crash leaves its input there and fails the run.
set -uo pipefail
seconds=$1
shift
failed=0
for p in "$@"; do
    name=$(basename "$p") corpus=build/fuzz/corpus/$(basename "$p") seeds=tests/fuzz/seeds/$(basename "${p/fuzz_/}")
    mkdir -p "$corpus"
    [ -d "$seeds" ] || seeds=
    # shellcheck disable=SC2086
    if "$p" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -artifact_prefix="build/fuzz/$name-" \
        "$corpus" $seeds >"build/fuzz/$name.log" 2>&1; then
        echo "ok   $name: $(grep -o 'Done [0-9]* runs' "build/fuzz/$name.log")"
    else
        echo "FAIL $name: see build/fuzz/$name.log"
        tail -n 30 "build/fuzz/$name.log"
        failed=$((failed + 1))
    fi
done
echo "$(($# - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
