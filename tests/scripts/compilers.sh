#!/usr/bin/env bash
# Builds the program with each compiler and prints a line for each: version, result, warnings.
#
#   compilers.sh [CC:MODE ...]      default: plain, with every gcc-N and clang-N that is installed
#
# MODE: plain, asan (sanitizers), O0, O2 (that optimization) or lto (optimization while linking).
#
# Each build has a folder build/compilers/CC-MODE with its log, which is removed after success (KEEP=1 keeps it). Exit
# code 1: a build failed. Warnings are counted; WERROR=1 makes them errors. Uses ccache if it is installed; then the
# times of repeated builds mean little.
set -uo pipefail
cd "$(dirname "$0")/../.."

wanted=("$@")
if [ $# -eq 0 ]; then
    for cc in $(compgen -c | grep -E '^(gcc|clang)-[0-9]+$' | sort -uV); do
        wanted+=("$cc:plain")
    done
fi

ccache=$(command -v ccache)
bad=0
for one in "${wanted[@]}"; do
    cc=${one%:*} mode=${one#*:}
    dir=build/compilers/$cc-$mode
    version=$("$cc" --version 2>/dev/null | head -1 | sed 's/.*) //; s/.*version \([0-9.]*\).*/\1/')
    if [ -z "$version" ]; then
        printf '%-10s %-6s not installed\n' "$cc" "$mode"
        bad=1
        continue
    fi
    mkdir -p "$dir"
    start=$SECONDS
    case $mode in
    plain) how=() ;;
    asan) how=(ASAN=1) ;;
    O?) how=(CFLAGS="-$mode -g") ;;
    lto) how=(CFLAGS="-O3 -g -flto=auto -Wno-maybe-uninitialized") ;; # false there: set by a function of another file
    *) echo "compilers.sh: unknown mode '$mode'" >&2; exit 2 ;;
    esac
    make -k -j"${JOBS:-2}" CUDA=0 CC="${ccache:+ccache }$cc" B="$dir" PROGRAM="$dir/holorun" WERROR="${WERROR:-}" "${how[@]}" all >"$dir/log" 2>&1
    rc=$?
    result=builds
    if [ $rc -eq 0 ]; then
        "$dir/holorun" version >"$dir/version" 2>&1 || result="builds, but does not run"
    else
        result=FAILS
    fi
    [ "$result" = builds ] || bad=1
    printf '%-10s %-6s %-10s %-8s %3d warnings  %4d s\n' "$cc" "$mode" "$version" "$result" \
        "$(grep -cE 'warning:' "$dir/log")" $((SECONDS - start))
    grep -E 'warning:|rror:' "$dir/log" | sort | uniq -c | head -20
    [ "$result" != builds ] || [ -n "${KEEP:-}" ] || find "$dir" -mindepth 1 ! -name log -delete
done
exit $bad
