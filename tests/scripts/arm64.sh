#!/usr/bin/env bash
# Cross-compiles for 64-bit ARM in a bare Debian 13, and runs test programs of kernels and models with qemu. As root.
#
#   arm64.sh [t_NAME ...]       default: those of tests/ops, and models whose logits are compared with references
#
#   CPU="max cortex-a72"    processors that qemu emulates (default: these two; cortex-a72 has no dot products)
#   KEEP=1                  uses the system and the build of the last run
#   LIMIT=1800              seconds for each program; one that takes longer fails
#
# bare.sh has the other settings. Ends with "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/scripts/bare.sh

tests=${*:-$(basename -s .c tests/ops/t_*.c) t_layers t_model t_qwen t_reference t_moe t_sampling}
. <(sed -n '/^required="/,/"$/p' tests/scripts/install.sh)
libraries=$(tr ' ' '\n' <<<"$required libcmocka-dev libfreetype-dev" | grep -e '-dev$' | sed 's/$/:arm64/' | tr '\n' ' ')

if [ -z "${KEEP:-}" ] || [ ! -d "$bare/arm64/src" ]; then
    bare_fresh trixie arm64
    bare_inside arm64 sh -c "dpkg --add-architecture arm64 && apt-get update -qq && apt-get install -y -qq --no-install-recommends \
        make git pkgconf crossbuild-essential-arm64 qemu-user $libraries >/tmp/apt.log 2>&1" || { tail "$bare/arm64/tmp/apt.log"; exit 3; }
    mkdir -p "$bare/arm64/src"
fi
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -pt "$bare/arm64/src"
bare_inside arm64 sh -c "cd /src && export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig &&
    make -j${JOBS:-2} CUDA=0 CC=aarch64-linux-gnu-gcc $(printf 'build/release/tests/%s ' $tests)" >"$bare/arm64.log" 2>&1 ||
    { tail -n 20 "$bare/arm64.log"; exit 1; }
echo "$(grep -c 'warning:' "$bare/arm64.log" || true) warnings"

passed=0 failed=0 skipped=0
for cpu in ${CPU:-max cortex-a72}; do
    for t in $tests; do
        bare_inside arm64 sh -c "cd /src && timeout ${LIMIT:-1800} qemu-aarch64 -cpu $cpu build/release/tests/$t" >"$bare/arm64-$t.log" 2>&1 && rc=0 || rc=$?
        ok=$(grep -c '^\[       OK \]' "$bare/arm64-$t.log" || true)
        skip=$(sed -n 's/^\[  SKIPPED \] \(.*: \)\{0,1\}\([0-9]*\) test(s).*/\2/p' "$bare/arm64-$t.log" | tail -n 1)
        bad=$(sed -n 's/^\[  FAILED  \] \(.*: \)\{0,1\}\([0-9]*\) test(s).*/\2/p' "$bare/arm64-$t.log" | tail -n 1)
        [ "$rc" -eq 0 ] || [ "${bad:-0}" -gt 0 ] || bad=1
        [ "$rc" -ne 124 ] || echo "stopped after ${LIMIT:-1800} s" >>"$bare/arm64-$t.log"
        echo "== $t on $cpu: $ok ok, ${bad:-0} failed, ${skip:-0} skipped"
        [ "$rc" -eq 0 ] || tail -n 30 "$bare/arm64-$t.log"
        passed=$((passed + ok)) failed=$((failed + ${bad:-0})) skipped=$((skipped + ${skip:-0}))
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
