#!/usr/bin/env bash
# Builds holorun in a bare Debian with the required packages, then also with the optional ones, and runs a smoke test of
# each build: commands answer, and commands without their library are refused. Needs root.
#
#   chroot_build.sh [bookworm|trixie ...]      default: both (Debian 12 and 13)
#
#   ROOT=DIR      directory of the bare systems, kept for the next run (default: build/chroot)
#   MIRROR=URL    Debian mirror; default: the one in apt's sources, else http://deb.debian.org/debian
#   JOBS=2        parallel compilations
#   FULL=no       skips the second build, with all packages
set -euo pipefail
cd "$(dirname "$0")/../.."

[ "$(id -u)" -eq 0 ] || { echo "chroot_build.sh: needs root to create a Debian system" >&2; exit 3; }
command -v debootstrap >/dev/null || { echo "chroot_build.sh: debootstrap is not installed" >&2; exit 3; }
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 2>/dev/null | head -n 1)}
mirror=${mirror:-http://deb.debian.org/debian}
bare=${ROOT:-build/chroot}

# Runs in the chroot: builds /src and checks the program.  $1: package sets, $2: expected lines "left out" of version.
inner() {
    cat <<'END'
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
cd /src
tests/scripts/install.sh $1
rm -rf build holorun
make -j"${JOBS:-2}" CUDA=0 2>&1 | tee /tmp/make.log | grep -vE '^  (CC|AR|LINK) ' || true
[ -x holorun ] || { tail -n 20 /tmp/make.log; exit 1; }
grep -c 'warning:' /tmp/make.log | sed 's/$/ warnings/'
./holorun version
[ "$(./holorun version | grep -c '^left out')" -eq "$2" ] || { echo "expected $2 lines 'left out'"; exit 1; }
for command in $(./holorun help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do ./holorun help "$command" >/dev/null; done
./holorun inspect >/dev/null
./holorun license >/dev/null
if [ "$2" -gt 0 ]; then
    rc=0
    ./holorun serve >/dev/null 2>/tmp/refused || rc=$?
    cat /tmp/refused
    [ "$rc" -eq 3 ] && grep -q 'built without libmicrohttpd' /tmp/refused || { echo "serve: exit $rc"; exit 1; }
fi
END
}

# $1: suite, $2: package sets, $3: number of missing features.
build_in() {
    local root=$bare/$1
    rm -rf "$root/src"
    mkdir -p "$root/src"
    git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$root/src"
    inner >"$root/tmp/build.sh"
    echo "== $1, packages: $2"
    JOBS=${JOBS:-2} chroot "$root" bash /tmp/build.sh "$2" "$3"
}

mkdir -p "$bare"
for suite in "${@:-bookworm trixie}"; do
    for suite in $suite; do
        if [ ! -e "$bare/$suite/etc/debian_version" ]; then
            echo "== creating Debian $suite in $bare/$suite"
            debootstrap --variant=minbase "$suite" "$bare/$suite" "$mirror" >"$bare/$suite.log" 2>&1 || {
                tail -n 5 "$bare/$suite.log" >&2
                exit 3
            }
        fi
        cp -L /etc/resolv.conf "$bare/$suite/etc/resolv.conf" 2>/dev/null || true
        build_in "$suite" required 3
        [ "${FULL:-yes}" = no ] || build_in "$suite" build 0
    done
done
echo "chroot_build.sh: passed"
