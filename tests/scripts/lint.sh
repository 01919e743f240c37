#!/usr/bin/env bash
# Checks format, sizes, includes and warnings of all files, and runs cppcheck and clang-tidy over the C sources that have
# changed (LINT=all: over all of them; see changed.sh).
set -uo pipefail
cd "$(dirname "$0")/../.."
mapfile -t sources < <(ls src/*.c src/*/*.c src/*/*/*.c actions/*.c tests/*/*.c 2>/dev/null)
mapfile -t headers < <(ls src/*/*.h src/*/*/*.h actions/*.h tests/*/*.h 2>/dev/null)
mapfile -t kernels < <(ls cuda/*.cu cuda/*.cuh cuda/*.[ch] tests/emu/*.cc tests/emu/*.h)
mapfile -t product < <(ls src/*.c src/*/*.c src/*/*/*.c actions/*.c | grep -v ops_neon) # these need the headers of ARM
bad=0 cores=$(nproc)

echo "rooms: no cycle between folders, no private header used from another one"
python3 tests/scripts/rooms.py || bad=1

echo "pocket: no part of the embedded model is named outside src/pocket"
python3 tests/scripts/pocket.py || bad=1

echo "sizes: lines of at most 110 columns, functions of at most 60 lines, files of at most 500"
python3 tests/scripts/sizes.py || bad=1
python3 tests/scripts/cuda_types.py || bad=1

if command -v ruff >/dev/null; then # Debian 12 has no package: pip install ruff mypy
    echo "ruff: assets/pocket, assets/fleet"
    for folder in assets/pocket assets/fleet; do
        (cd $folder && ruff check -q . && ruff format -q --check --exclude '*.md' .) || bad=1
    done
else
    echo "ruff: not installed (pip install ruff), assets/pocket and assets/fleet are not checked"
fi
if command -v mypy >/dev/null; then
    echo "mypy: assets/fleet"
    (cd assets/fleet && mypy --no-error-summary --cache-dir /dev/null .) || bad=1
else
    echo "mypy: not installed (pip install mypy types-requests), assets/fleet is not checked"
fi

echo "clang-format: ${#sources[@]} sources, ${#headers[@]} headers, ${#kernels[@]} files of kernels"
printf '%s\n' "${sources[@]}" "${headers[@]}" "${kernels[@]}" | xargs -P"$cores" -n 60 clang-format --dry-run --Werror || bad=1

echo "compiler: no warnings"
make --no-print-directory -s -j"$cores" WERROR=1 all tests >/dev/null || bad=1

mapfile -t analysed < <(printf '%s\n' "${product[@]}" | tests/scripts/changed.sh)
echo "cppcheck: ${#analysed[@]} of ${#product[@]} sources"
[ ${#analysed[@]} -eq 0 ] || cppcheck -q -j"$cores" --std=c11 --enable=warning,portability,performance --inline-suppr --error-exitcode=1 --suppress=missingInclude \
    --suppress=missingIncludeSystem --suppress=unknownMacro --suppress=internalAstError:src/ops/* -D_GNU_SOURCE -D__x86_64__ -Isrc -I. "${analysed[@]}" || bad=1

echo "clang-tidy: the same sources"
headers_of_libraries=$(pkg-config --cflags sdl2 pangocairo dbus-1)
# The analyzer takes 19/20 of the time. It follows 40,000 states of a function instead of 225,000, which takes a quarter.
tidy() {
    local isa=() fewer_paths=(-Xclang -analyzer-config -Xclang max-nodes=40000)
    case $1 in
    *avx2*) isa=(-mavx2 -mfma -mf16c) ;;
    *avx512*) isa=(-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma) ;;
    esac
    clang-tidy --quiet "$1" -- "${fewer_paths[@]}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. $headers_of_libraries "${isa[@]}" 2>/dev/null
}
export -f tidy
export headers_of_libraries
printf '%s\n' "${analysed[@]}" | sed '/^$/d' | xargs -P"$cores" -I{} bash -c 'tidy {}' || bad=1
disassembler() { command -v nvcc && command -v cuobjdump && command -v nvdisasm; }
if ls build/cuda/*.o >/dev/null 2>&1 && disassembler >/dev/null; then
    echo "kernels: registers, spills and the order of loads, beside tests/results/kernels-sm90.tsv"
    python3 tests/scripts/kernels.py --check 90 || bad=1
fi
[ "$bad" -eq 0 ] && echo "lint: clean"
exit "$bad"
