#!/usr/bin/env bash
# Applies each mistake of the tables in tests/mutants/ to a copy of the sources, one at a time, and prints the first
# test that fails. Ends with "N passed, N failed": a mistake that no test detects is a failure.
#
#   mutants.sh [WORD ...]        only the mistakes whose line contains one of the words
#
# TABLE=cuda: only those of tests/mutants/cuda.txt. The objects of the correct sources are kept, so that a mistake
# recompiles only its own file and those that include it; for a header of kernels first only those that the test is
# about. A kernel that the GPU emulator stops counts as detected, and so does a test that computes for SECONDS_EACH (120)
# without an end. The copy is built with little optimization and without warnings; KEEP=1 keeps it. JOBS=2 tests two
# mistakes at a time, in separate copies. BUILT=build/release begins with that build, which must be up to date and whose
# tests must pass.
set -uo pipefail
cd "$(dirname "$0")/../.."
tables=(tests/mutants/*.txt)
[ -z "${TABLE:-}" ] || tables=("tests/mutants/$TABLE.txt")
room=$(mktemp -d "${TMPDIR:-/tmp}/holorun-mutants-XXXXXX") copy=$room/1 jobs=${JOBS:-1}
trap '[ -n "${KEEP:-}" ] || rm -rf "$room"' EXIT
mkdir "$copy"
tar -c --exclude=./build --exclude=./.git --exclude=./assets --exclude=./holorun . | tar -x -C "$copy"
ln -s "$PWD/assets" "$copy/assets"
built=${BUILT:-build/mutants} # dependency files name this folder
flags=(B="$built" CUDA=0 WARN= EMU_OPT='-O1 -w')
if [ -n "${BUILT:-}" ]; then
    mkdir "$copy/build"
    cp -a "$built" "$copy/$built"
else
    flags+=(CFLAGS=-O1)
fi
kept=() # objects that are not compiled again
build() {
    nice -n 15 make -s -j2 -C "$copy" "${kept[@]}" "${flags[@]}" "${@/#/$built/tests/}" \
        "$built/helpers/xclient" # without it tests with a window are skipped, and no mistake is detected
}

# Builds the emulator after a change of kernel source $1 by the commands that make would run, without debug information:
# make itself, started for each mistake, takes as long as the compiler for a small file.
build_kernels() {
    local known
    known=$room/commands-$(md5sum <<<"$1 ${kept[*]}" | cut -c1-32)
    if [ ! -e "$known" ]; then
        make -s -n -C "$copy" -W "$1" "${kept[@]}" "${flags[@]}" "$built/libemu.so" |
            grep -E -- " -o $built/(emu/|libemu)" | sed 's/ -g / /' >"$copy/commands"
        mv "$copy/commands" "$known"
    fi
    [ -s "$known" ] && (cd "$copy" && nice -n 15 bash -e "$known")
}

# Runs a test program or some of its tests ("program:words_of_a_test_name") with output to the log. Its processor time is
# limited, since other programs of a busy machine may take most of the real time; a deadlock takes none.
limit=${SECONDS_EACH:-120}
run() {
    local filter=()
    [[ $1 != *:* ]] || { filter=("${1#*:}") && filter=("${filter[0]//_/ }"); }
    { (cd "$copy" && ulimit -S -t "$limit" && # beyond a hard limit the kernel sends SIGKILL
        nice -n 15 timeout $((10 * limit)) "$built/tests/${1%%:*}" "${filter[@]}") >"$copy/log" 2>&1; } 2>/dev/null
}

# Prints the result of a failed run of test $1 with exit code $2.
verdict() {
    local claims last
    mapfile -t claims < <(sed -n -e '/^\[  FAILED  \] [0-9]* test(s), listed/d' -e 's/^\[  FAILED  \] //p' "$copy/log" | sort -u)
    last=$(grep -a -m1 -E '^(kernel|stream|bug)' "$copy/log" || tail -1 "$copy/log")
    [ "$2" -ne 124 ] && [ "$2" -ne 152 ] || last='nothing: it does not come to an end'
    echo -n "${1%%:*}: ${claims[0]:-stops with $last}"
    [ ${#claims[@]} -lt 2 ] || echo -n " (and $((${#claims[@]} - 1)) more)"
}

# Kernels that the test programs are about.
declare -A kernels=([t_cuda_ops]="rows backend" [t_cuda_linear]="linear matvec quantized" [t_cuda_sample]=sample
    [t_cuda_attend]="attend attend_plain attend_split" [t_cuda_kv8]="kv8 attend attend_split" [t_cuda_ssm]="mamba scan ssm"
    [t_cuda_stochastic_round]="mamba scan ssm" [t_cuda_delta]="delta delta_chunks delta_decode gates"
    [t_cuda_blocks]="blocks linear matvec" [t_cuda_moe]=moe)

# Lets make keep the objects of all kernels but those of the named tests, if they are known.
keep_others() {
    local t f wanted=''
    for t in "$@"; do
        [ -n "${kernels[$t]:-}" ] || return
        wanted+=" ${kernels[$t]} "
    done
    for f in cuda/*.cu; do
        f=${f#cuda/} f=${f%.cu}
        [[ $wanted == *" $f "* ]] || kept+=(-o "$built/emu/$f.o")
    done
}

# Builds test $1 for the mistake of try(). Kernels are built before the first test.
rebuild() {
    if [[ $last != cuda/*.cu* ]]; then
        build "${1%%:*}"
    elif [ "$1" = "${tests[0]}" ]; then
        build_kernels "$last"
    fi
}

# Builds and runs the tests of a mistake until one fails. Sets caught or bad of try().
run_until_caught() {
    local t rc
    for t in "${tests[@]}"; do
        if ! rebuild "$t" >"$copy/log" 2>&1; then
            bad="does not compile: $(grep -a -m1 error "$copy/log")"
            return
        fi
        run "$t" && continue
        rc=$?
        caught=$(verdict "$t" $rc)
        return
    done
}

# Applies one mistake with sed, builds and runs its tests, and restores the files.
passed=0 failed=0
try() { # $1 title, then the globals: edits ("file|sed"), tests
    local title=$1 file last='' script caught='' bad=''
    touch "$copy/began"
    for edit in "${edits[@]}"; do
        file=${edit%%|*} script=${edit#*|}
        [ "$file" = "$last" ] || cp -p "$copy/$file" "$copy/$file.right"
        cp "$copy/$file" "$copy/before"
        sed -i "$script" "$copy/$file"
        ! cmp -s "$copy/$file" "$copy/before" || bad="the edit of $file changes nothing: $script"
        last=$file
    done
    [[ $last != cuda/*.cuh ]] || keep_others "${tests[@]%%:*}"
    [ -n "$bad" ] || run_until_caught
    [ -n "$bad$caught" ] || [ ${#kept[@]} -eq 0 ] || { kept=() && run_until_caught; }
    kept=()
    [ -n "$bad$caught" ] || bad="SURVIVED ${tests[*]}"
    if [ -z "$bad" ]; then
        echo "$title: caught by $caught"
        passed=$((passed + 1))
    else
        echo "$title: $bad"
        failed=$((failed + 1))
    fi
    for edit in "${edits[@]}"; do
        file=${edit%%|*}
        [ ! -e "$copy/$file.right" ] || mv "$copy/$file.right" "$copy/$file"
    done
    put_back
}

# Restores the objects of the correct sources.
put_back() {
    (cd "$copy/$built" && find . -type f -newer "$copy/began" -print0) | while IFS= read -r -d '' f; do
        cp -p "$copy/build/right/$f" "$copy/$built/$f" 2>/dev/null || rm -f "$copy/$built/$f"
    done
}

wanted() {
    [ ${#words[@]} -eq 0 ] && return
    for w in "${words[@]}"; do [[ $1 == *"$w"* ]] && return; done
    return 1
}

# The tests of the selected mistakes must pass on the correct sources.
words=("$@")
all=()
while IFS= read -r line; do
    case $line in
    'mistake '*) title=${line#mistake } ;;
    'tests '*) ! wanted "$title" || all+=(${line#tests }) ;;
    esac
done < <(cat "${tables[@]}")
[ ${#all[@]} -gt 0 ] || { echo 'no such mistake'; exit 1; }
mapfile -t all < <(printf '%s\n' "${all[@]}" | sort -u)
mapfile -t names < <(printf '%s\n' "${all[@]%%:*}" | sort -u)
echo "building ${names[*]}"
[ -n "${BUILT:-}" ] || build "${names[@]}" >"$copy/log" 2>&1 || { tail "$copy/log"; exit 1; }
for t in "${all[@]}"; do
    [ -z "${BUILT:-}" ] || break
    run "$t" || { echo "$t fails without any mistake:"; tail -20 "$copy/log"; exit 1; }
    grep -q 'PASSED' "$copy/log" || { echo "$t is not a test"; exit 1; }
done
cp -a "$copy/$built" "$copy/build/right"

# Tries every $jobs-th selected mistake in a separate copy.
try_share() { # $1 from 1 to $jobs
    local file='' title='' n=0
    copy=$room/$1
    while IFS= read -r line; do
        case $line in
        'mistake '*) title=${line#mistake } edits=() ;;
        'file '*) file=${line#file } ;;
        'sed '*) edits+=("$file|${line#sed }") ;;
        'tests '*)
            wanted "$title" || continue
            read -ra tests <<<"${line#tests }"
            [ $((n++ % jobs + 1)) -ne "$1" ] || try "$title"
            ;;
        esac
    done < <(cat "${tables[@]}")
    echo "$passed $failed" >"$room/sum$1"
}
for ((i = 2; i <= jobs; i++)); do cp -a "$copy" "$room/$i"; done
for ((i = 1; i <= jobs; i++)); do try_share "$i" & done
wait
for ((i = 1; i <= jobs; i++)); do
    read -r p f <"$room/sum$i"
    passed=$((passed + p)) failed=$((failed + f))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
