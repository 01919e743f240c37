# bare.sh - bare Debian systems for scripts that try holorun in one. To be sourced, as root; needs debootstrap.
#
#   bare_fresh SUITE NAME            makes the folder $bare/NAME a fresh system of SUITE (bookworm, trixie, testing)
#   bare_inside NAME COMMAND ...     runs a command in it, with processes and mounts that end with the command
#
#   ROOT=DIR      directory of the systems (default: build/bare); each fresh one is a copy of $bare/SUITE, which is kept
#   MIRROR=URL    Debian mirror (default: the one in apt's sources)
#   CACHE=DIR     uses ccache in the systems, and keeps its objects and downloaded packages in DIR/CODENAME;
#                 with WERROR=1 warnings are errors there

bare=${ROOT:-build/bare}

[ "$(id -u)" -eq 0 ] || { echo "${0##*/}: needs root to create a Debian system" >&2; exit 3; }
command -v debootstrap >/dev/null || { echo "${0##*/}: debootstrap is not installed; tests/scripts/install.sh bare" >&2; exit 3; }

bare_fresh() {
    local suite=$1 root=$bare/$2 mirror=${MIRROR:-}
    if [ ! -e "$bare/$suite/etc/debian_version" ]; then
        [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 2>/dev/null | head -n 1)
        [ -n "$mirror" ] || { echo "${0##*/}: apt has no mirror of Debian; set MIRROR" >&2; exit 3; }
        mkdir -p "$bare"
        rm -rf "$bare/$suite"
        debootstrap --variant=minbase "$suite" "$bare/$suite" "$mirror" >"$bare/$suite.log" 2>&1 || {
            tail -n 5 "$bare/$suite.log" >&2
            rm -rf "$bare/$suite"
            exit 3
        }
    fi
    rm -rf "$root"
    cp -a "$bare/$suite" "$root"
    # A mirror that is a snapshot serves lists of testing whose term has ended.
    echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90mirror"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts" # sudo looks the name up
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/90bare"
    [ -n "${CACHE:-}" ] || return 0
    mkdir -p "$(bare_cache "$root")"/{ccache,apt}
    # Keys of objects contain the name of the compiler, the language and warnings, not the directory.
    echo "export CC=gcc LANG=C.UTF-8 CCACHE_DIR=/cache CCACHE_NOHASHDIR=1 CCACHE_UMASK=000 WERROR=${WERROR:-}
        PATH=/usr/lib/ccache:\$PATH; umask 022" >"$root/etc/profile.d/ccache.sh"
    mkdir -p "$root/cache"
    bare_inside "$2" sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends ccache >/dev/null 2>&1
        chmod 777 /cache'
}

# Prints the directory of a system's objects and packages. $1: root of the system.
bare_cache() { sed -n "s|^VERSION_CODENAME=|$CACHE/|p" "$1/etc/os-release"; }

bare_inside() {
    local root=$bare/$1
    shift
    local cache=
    [ ! -d "$root/cache" ] || [ -z "${CACHE:-}" ] || cache=$(bare_cache "$root")
    unshare --mount --pid --fork --kill-child --propagation private bash -c 'set -e; root=$1 cache=$2; shift 2
        [ -z "$cache" ] || mount --bind "$cache/ccache" "$root/cache"
        [ -z "$cache" ] || mount --bind "$cache/apt" "$root/var/cache/apt/archives"
        mount -t proc proc "$root/proc"
        mount -t sysfs -o ro sysfs "$root/sys"
        mkdir -p "$root/dev/shm" "$root/dev/pts"
        mount -t tmpfs tmpfs "$root/dev/shm"
        mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666
        ln -sf pts/ptmx "$root/dev/ptmx"
        exec env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@"' sh "$root" "$cache" "$@"
}
