#!/usr/bin/env bash
# Builds holorun in a bare Debian with the required packages only, then with the optional ones, and runs a smoke test of
# each program: the commands run, and those without their library are refused.  Then an ordinary user runs the README's
# two commands, `make demo` and `make test`.  As root.
#
#   chroot_build.sh [bookworm|trixie ...]      default: both (Debian 12 and 13)
#
#   ROOT=DIR        directory of the bare systems, kept for the next run (default: build/chroot)
#   MIRROR=URL      Debian mirror (default: the one in apt's sources)
#   JOBS=2          parallel compilations of the first two builds
#   STEPS="required build demo test"    steps to run
set -euo pipefail
cd "$(dirname "$0")/../.."

[ "$(id -u)" -eq 0 ] || { echo "chroot_build.sh: needs root to create a Debian system" >&2; exit 3; }
command -v debootstrap >/dev/null || { echo "chroot_build.sh: debootstrap is not installed" >&2; exit 3; }
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 2>/dev/null | head -n 1)}
[ -n "$mirror" ] || { echo "chroot_build.sh: apt has no mirror of Debian; set MIRROR" >&2; exit 3; }
steps=" ${STEPS:-required build demo test} "
bare=${ROOT:-build/chroot}

# Runs in the chroot: builds /src and checks the program.  $1: package sets, $2: expected lines "missing" of version.
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
[ "$(./holorun version | grep -c '^missing')" -eq "$2" ] || { echo "expected $2 lines 'missing'"; exit 1; }
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

# Installs what the README asks for, and creates the user who runs the two commands.
prepare_user() {
    cat <<'END'
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
apt-get install -y -qq --no-install-recommends git make sudo >/dev/null
id someone >/dev/null 2>&1 || useradd -m -s /bin/bash someone
echo 'someone ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/someone
rm -rf /home/someone/holorun
cp -a /src /home/someone/holorun
rm -rf /home/someone/holorun/build /home/someone/holorun/holorun
chown -R someone: /home/someone
END
}

# Runs commands in the chroot with /proc and /dev of their own, which are unmounted when they end.
inside() {
    local root=$1
    shift
    unshare --mount --propagation private bash -c 'set -e; root=$1; shift
        mount -t proc proc "$root/proc"
        mkdir -p "$root/dev/shm" "$root/dev/pts"
        mount -t tmpfs tmpfs "$root/dev/shm"
        mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666
        ln -sf pts/ptmx "$root/dev/ptmx"
        exec chroot "$root" "$@"' sh "$root" "$@"
}

copy_tree() {
    rm -rf "$1/src"
    mkdir -p "$1/src"
    git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$1/src"
}

# $1: directory of the system, $2: package set, $3: number of features that are left out.
build_in() {
    [[ $steps == *" $2 "* ]] || return 0
    inner >"$1/tmp/build.sh"
    echo "== ${1##*/}, packages: $2"
    JOBS=${JOBS:-2} inside "$1" bash /tmp/build.sh "$2" "$3"
}

# Runs `make $2` as the ordinary user.
as_user() {
    [[ $steps == *" $2 "* ]] || return 0
    echo "== ${1##*/}, as an ordinary user: make $2"
    inside "$1" su - someone -c "cd holorun && LC_ALL=C.UTF-8 make $2" 2>&1 | grep -vE '^  (CC|C\+\+|AR|LINK) '
}

mkdir -p "$bare"
for suite in ${@:-bookworm trixie}; do
    root=$bare/$suite
    if [ ! -e "$root/etc/debian_version" ]; then
        echo "== creating Debian $suite in $root"
        debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 || {
            tail -n 5 "$root.log" >&2
            exit 3
        }
    fi
    cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts" # sudo looks the name up
    copy_tree "$root"
    build_in "$root" required 3
    build_in "$root" build 0
    if [[ $steps == *" demo "* || $steps == *" test "* ]]; then
        prepare_user >"$root/tmp/user.sh"
        inside "$root" bash /tmp/user.sh
        as_user "$root" demo
        as_user "$root" test
    fi
done
echo "chroot_build.sh: passed"
