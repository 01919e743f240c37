#!/usr/bin/env bash
# Puts each mistake of tests/mutants/table.txt into a copy of the sources, one at a time, and tells which test
# notices.  Closes with "N passed, N failed": a mistake that every test lets through is a failure.
#
#   mutants.sh [WORD ...]        only the mistakes whose line contains one of the words
#
# The copy is built without optimising much and without warnings; KEEP=1 leaves it behind.
set -uo pipefail
cd "$(dirname "$0")/../.."
table=tests/mutants/table.txt
copy=$(mktemp -d "${TMPDIR:-/tmp}/holorun-mutants-XXXXXX")
trap '[ -n "${KEEP:-}" ] || rm -rf "$copy"' EXIT
tar -c --exclude=./build --exclude=./.git --exclude=./assets --exclude=./holorun . | tar -x -C "$copy"
ln -s "$PWD/assets" "$copy/assets"
build() { nice -n 5 make -s -C "$copy" B=build/mutants CFLAGS=-O1 WARN= "${@/#/build/mutants/tests/}"; }

# One mistake: its sed lines applied to its files, its tests built and run, the files put back.
passed=0 failed=0
try() { # $1 title, then the globals: edits ("file|sed"), tests
    local title=$1 file last='' script programs=() caught=''
    for edit in "${edits[@]}"; do
        file=${edit%%|*} script=${edit#*|}
        [ "$file" = "$last" ] || cp -p "$copy/$file" "$copy/$file.right"
        cp "$copy/$file" "$copy/before"
        sed -i "$script" "$copy/$file"
        if cmp -s "$copy/$file" "$copy/before"; then
            echo "$title: the edit of $file changes nothing: $script"
            failed=$((failed + 1)) caught=none
        fi
        last=$file
    done
    if [ -z "$caught" ]; then
        for t in "${tests[@]}"; do programs+=("${t%%:*}"); done
        if ! build "${programs[@]}" >"$copy/log" 2>&1; then
            caught='does not compile'
            echo "$title: $caught"
            tail -5 "$copy/log"
            failed=$((failed + 1))
        else
            for t in "${tests[@]}"; do
                filter=() && [[ $t == *:* ]] && filter=("${t#*:}")
                (cd "$copy" && timeout 120 "build/mutants/tests/${t%%:*}" "${filter[@]}") >"$copy/log" 2>&1 && continue
                mapfile -t claims < <(sed -n -e '/^\[  FAILED  \] [0-9]* test(s), listed/d' -e 's/^\[  FAILED  \] //p' "$copy/log" | sort -u)
                caught+="${caught:+; }${t%%:*}: ${claims[0]:-stops with $(tail -1 "$copy/log")}"
                [ ${#claims[@]} -lt 2 ] || caught+=" (and $((${#claims[@]} - 1)) more)"
            done
            if [ -n "$caught" ]; then
                echo "$title: caught by $caught"
                passed=$((passed + 1))
            else
                echo "$title: SURVIVED ${tests[*]}"
                failed=$((failed + 1))
            fi
        fi
    fi
    for edit in "${edits[@]}"; do
        file=${edit%%|*}
        [ ! -e "$copy/$file.right" ] || { mv "$copy/$file.right" "$copy/$file" && touch "$copy/$file"; }
    done
}

wanted() {
    [ ${#words[@]} -eq 0 ] && return
    for w in "${words[@]}"; do [[ $1 == *"$w"* ]] && return; done
    return 1
}

# The tests must pass before anything is spoiled.
words=("$@")
mapfile -t all < <(sed -n 's/^tests //p' $table | tr ' ' '\n' | sort -u)
mapfile -t names < <(printf '%s\n' "${all[@]%%:*}" | sort -u)
echo "building ${names[*]}"
build "${names[@]}" >"$copy/log" 2>&1 || { tail "$copy/log"; exit 1; }
for t in "${all[@]}"; do
    filter=() && [[ $t == *:* ]] && filter=("${t#*:}")
    (cd "$copy" && timeout 120 "build/mutants/tests/${t%%:*}" "${filter[@]}") >"$copy/log" 2>&1 ||
        { echo "$t fails without any mistake:"; tail -20 "$copy/log"; exit 1; }
done

file='' edits=()
while IFS= read -r line; do
    case $line in
    'mistake '*) title=${line#mistake } edits=() ;;
    'file '*) file=${line#file } ;;
    'sed '*) edits+=("$file|${line#sed }") ;;
    'tests '*)
        read -ra tests <<<"${line#tests }"
        ! wanted "$title" || try "$title"
        ;;
    esac
done <$table
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
