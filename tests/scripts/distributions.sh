#!/usr/bin/env bash
# Runs the README's two commands and more in bare Debian systems, and writes the results into the table of
# tests/results/distributions.md. As root.
#
#   distributions.sh [bookworm|trixie|testing ...]      default: all
#
#   STEPS="features demo test root none compilers"      steps to run, in this order (default: the first five)
#     features   builds with the required packages only, then with all: commands run, or are refused without their library
#     demo       `make demo` from a fresh clone in a fresh system, as an ordinary user with sudo
#     test       the tests, by that user in the same clone (TESTS="t_a t_[!c]*": these only)
#     root none  `make demo` as root; as a user without sudo, which must name the missing packages
#     compilers  tests/scripts/compilers.sh with every gcc-N and clang-N of the distribution (COMPILERS="gcc-13:plain ...")
#
# The clone has the committed files only. bare.sh has the other settings; with CACHE the times of builds mean little.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/scripts/bare.sh

steps=" ${STEPS:-features demo test root none} "
table=tests/results/distributions.md
bad=0

# Writes a row in place of the one of the same distribution and step. $1: suite, $2: step, $3: result.
record() {
    local gcc row
    gcc=$(bare_inside "$1-$2" gcc -dumpfullversion 2>/dev/null || echo none)
    row="| $1 | $2 | $gcc | $3 | $(cut -d' ' -f1 /proc/loadavg) | $(git describe --always), $(date +%F) |"
    grep -vF "| $1 | $2 |" "$table" >"$table.new"
    echo "$row" >>"$table.new"
    mv "$table.new" "$table"
    echo "$row"
}

# Creates a fresh system for a step with a clone in the home of `someone`. $1: suite, $2: step.
prepare() {
    bare_fresh "$1" "$1-$2"
    bare_inside "$1-$2" sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends git make sudo >/dev/null 2>&1
        useradd -m -s /bin/bash someone'
    git clone -q --depth 1 "file://$PWD" "$bare/$1-$2/home/someone/holorun"
    bare_inside "$1-$2" chown -R someone: /home/someone
}

# Runs a command in the clone. $1: suite, $2: step whose system is used, $3: user, $4: command. Its output is in log,
# with the Unix time before each line in log.times.
in_clone() {
    log=$bare/$1-$2.log
    bare_inside "$1-$2" su - "$3" -c "cd ~someone/holorun && LANG=C.UTF-8 $4" 2>&1 | tee "$log" |
        while IFS= read -r line; do printf '%(%s)T %s\n' -1 "$line"; done >"$log.times"
}

# Prints how long packages, build and booking took, from the times of the first line, of the first compilation and of
# the link of the program. $1: Unix time of the end.
parts() {
    awk -v end="$1" 'NR == 1 { start = $1 } / CC / && !cc { cc = $1 } / LINK +holorun/ { link = $1 }
        END { printf "packages %d s, build %d s, booking %d s", cc - start, link - cc, end - link }' "$log.times"
}

sudo_for_someone() { echo 'someone ALL=(ALL) NOPASSWD: ALL' >"$bare/$1/etc/sudoers.d/someone"; }

# A failed step has its exit code in rc.
run_demo() { # $1: suite, $2: step, $3: user
    local rc=0
    in_clone "$1" "$2" "$3" "make demo" || rc=$?
    if [ $rc -eq 0 ]; then
        record "$1" "$2" "books the flight; $(parts "$(date +%s)")${CACHE:+ (cached)}; $(grep -c 'warning:' "$log" || true) warnings"
    else
        bad=1
        tail -n 20 "$log"
        record "$1" "$2" "FAILS (exit code $rc)"
    fi
}

step_demo() {
    prepare "$1" demo
    sudo_for_someone "$1-demo"
    run_demo "$1" demo someone
}

step_root() {
    prepare "$1" root
    bare_inside "$1-root" chown -R root: /home/someone/holorun
    run_demo "$1" root root
}

# Runs the demo as a user whom sudo refuses, then without sudo.
step_none() {
    local rc without
    prepare "$1" none
    for without in "" "rm -f /usr/bin/sudo"; do
        rc=0
        [ -z "$without" ] || bare_inside "$1-none" $without
        in_clone "$1" none someone "make demo" || rc=$?
        if [ $rc -eq 0 ] || [ "$(grep -vc '^make' "$log")" -ne 1 ] || ! grep -q 'as root run: apt-get install' "$log"; then
            bad=1
            cat "$log"
            record "$1" none "FAILS (exit code $rc)"
            return
        fi
    done
    record "$1" none "one line with the packages to ask for"
}

step_test() {
    local rc=0 one names=
    for one in ${TESTS:-}; do names+=" $(basename -s .c tests/*/$one.c | sed 's|^|build/release/tests/|' | tr '\n' ' ')"; done
    [ -d "$bare/$1-demo/home/someone/holorun" ] || { prepare "$1" demo && sudo_for_someone "$1-demo"; }
    rm -rf "$bare/$1-test"
    mv "$bare/$1-demo" "$bare/$1-test"
    in_clone "$1" test someone "make test ${names:+TESTS='$names'}" || rc=$?
    [ $rc -eq 0 ] || { bad=1; grep -E '^\[  FAILED|failed, ' "$log" | grep -v ' 0 failed' || true; }
    record "$1" test "$(grep -E '^[0-9]+ passed, ' "$log" || echo "FAILS (exit code $rc)")${TESTS:+ (\`$TESTS\`)}"
}

# Runs in the system: builds and checks the program, installs and removes it. $1: package set, $2: number of features
# that are left out.
features() {
    cat <<'END_FEATURES'
set -eu
cd ~someone/holorun
tests/scripts/install.sh $1
make CUDA=0 -j2 >/tmp/make.log 2>&1 || { tail -n 20 /tmp/make.log; exit 1; }
[ "$(./holorun version | grep -c '^missing')" -eq "$2" ] || { echo "expected $2 lines 'missing'"; exit 1; }
[ "$(grep -c 'NOTE  built without' /tmp/make.log)" -eq "$2" ] || { echo "expected $2 notes"; exit 1; }
for command in $(./holorun help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do ./holorun help "$command" >/dev/null; done
./holorun inspect >/dev/null
./holorun license >/dev/null
[ "$2" -eq 0 ] || {
    rc=0
    ./holorun serve >/dev/null 2>/tmp/refused || rc=$?
    [ "$rc" -eq 3 ] && grep -q 'built without libmicrohttpd' /tmp/refused || { echo "serve: exit $rc"; exit 1; }
}
find / -xdev -path "$PWD" -prune -o -path /tmp -prune -o ! -type d -print | sort >/tmp/before
make install >/tmp/install.log
/usr/local/bin/holorun version >/dev/null
make uninstall >/tmp/uninstall.log
find / -xdev -path "$PWD" -prune -o -path /tmp -prune -o ! -type d -print | sort >/tmp/after
diff /tmp/before /tmp/after
END_FEATURES
}

step_features() {
    prepare "$1" features
    bare_inside "$1-features" chown -R root: /home/someone/holorun
    features >"$bare/$1-features/tmp/features.sh"
    if bare_inside "$1-features" bash -l /tmp/features.sh required 3 &&
        bare_inside "$1-features" bash -l /tmp/features.sh build 0; then
        record "$1" features "builds with the required packages only, and with all; \`make uninstall\` leaves no file"
    else
        bad=1
        record "$1" features "FAILS"
    fi
}

# With COMPILERS, installs only these.
step_compilers() {
    local rc=0 wanted
    wanted=$(printf '%s\n' ${COMPILERS:-} | sed -nE 's/:.*//p' | sort -u | paste -sd '|')
    prepare "$1" compilers
    bare_inside "$1-compilers" chown -R root: /home/someone/holorun
    bare_inside "$1-compilers" sh -c "~someone/holorun/tests/scripts/install.sh build
        apt-cache pkgnames | grep -xE '${wanted:-gcc-1[2-9]|clang-(1[4-9]|2[0-9])}' | sed -E 'p; s/clang-/libclang-rt-/; /rt-/s/$/-dev/' |
            xargs apt-cache madison | awk '{ print \$1 }' | sort -u | xargs apt-get install -y -qq --no-install-recommends >/dev/null"
    in_clone "$1" compilers root "tests/scripts/compilers.sh ${COMPILERS:-}" || rc=$?
    cat "$log"
    [ $rc -eq 0 ] || bad=1
}

for suite in ${@:-bookworm trixie testing}; do
    for step in features demo test root none compilers; do
        [[ $steps != *" $step "* ]] || "step_$step" "$suite"
    done
done
exit $bad
