#!/usr/bin/env bash
# Tests the package of build/deb in a bare Debian (debootstrap), with only the package and its dependencies: every
# command answers, units are accepted, the demo books its flight from the installed files; then the package is removed
# and must leave no file. Needs root.
#
#   DEMO=no       skips the demo, which needs a browser (300 MB)
#   ROOT=DIR      keeps the bare system here for the next run (default: build/deb/root, removed at the end)
#   MIRROR=URL    Debian mirror; default: the one in apt's sources
set -uo pipefail
cd "$(dirname "$0")/../.."

[ "$(id -u)" -eq 0 ] || { echo "deb_try.sh: only root may make a bare Debian" >&2; exit 3; }
package=$(ls build/deb/holorun_*.deb 2>/dev/null | head -n 1)
[ -n "$package" ] || { echo "deb_try.sh: no package in build/deb; make deb" >&2; exit 2; }
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 2>/dev/null | head -n 1)}
[ -n "$mirror" ] || { echo "deb_try.sh: apt names no mirror; set MIRROR" >&2; exit 3; }
bare=${ROOT:-build/deb/root}
root=build/deb/try

echo "lintian"
lintian --profile debian --fail-on error "$package" || exit 1

if [ ! -e "$bare/etc/debian_version" ]; then
    echo "a bare Debian in $bare"
    debootstrap --variant=minbase bookworm "$bare" "$mirror" >build/deb/debootstrap.log 2>&1 || {
        tail -n 5 build/deb/debootstrap.log >&2
        exit 3
    }
fi

finish() {
    umount "$root/proc" "$root/dev/shm" "$root/dev/pts" 2>/dev/null
    rm -rf "$root"
    [ -n "${ROOT:-}" ] || rm -rf "$bare"
}
trap finish EXIT
rm -rf "$root"
cp -a "$bare" "$root"
cp "$package" "$root/tmp/holorun.deb"
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null
mount -t proc proc "$root/proc" || exit 3
mkdir -p "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts" 2>/dev/null

# As a separate user: nothing in the package is for root only.
cat >"$root/tmp/as_user.sh" <<'END'
set -eu
export HOME=/home/someone LANG=C.UTF-8
cd
holorun version
holorun license | head -n 3
for command in $(holorun help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do holorun help "$command" >/dev/null; done
holorun inspect >/dev/null
[ "${DEMO:-yes}" = no ] || bash /usr/share/holorun/demo/demo.sh
END
cat >"$root/tmp/try.sh" <<'END'
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
find / -xdev -path /proc -prune -o -path /tmp -prune -o -print | sort >/tmp/before
apt-get update -qq
apt-get install -y -qq --no-install-recommends /tmp/holorun.deb >/tmp/install.log 2>&1 || { tail -n 20 /tmp/install.log; exit 1; }
dpkg -L holorun | sort >/tmp/files
echo "installed: $(wc -l </tmp/files) files, $(dpkg-query -W -f '${Installed-Size}' holorun) KiB"
useradd -m someone
if [ "${DEMO:-yes}" != no ]; then
    apt-get install -y -qq --no-install-recommends xvfb openbox xauth chromium chromium-sandbox x11-utils fonts-dejavu-core >/tmp/demo.log 2>&1 ||
        { tail -n 20 /tmp/demo.log; exit 1; }
fi
su someone -s /bin/bash -c 'bash /tmp/as_user.sh'
apt-get install -y -qq --no-install-recommends systemd >/dev/null 2>&1
for unit in /usr/lib/systemd/user/holorun-*.service; do
    XDG_RUNTIME_DIR=/tmp systemd-analyze verify --user --man=no "$unit"
    systemd-analyze security --offline=true --no-pager --threshold=60 "$unit" | tail -n 1
done
apt-get purge -y -qq holorun >/dev/null 2>&1
left=$(while read -r file; do [ -d "$file" ] || [ ! -e "$file" ] || echo "$file"; done </tmp/files)
[ -z "$left" ] || { echo "left after removal: $left"; exit 1; }
ls -d /usr/share/holorun 2>/dev/null && exit 1
echo "removed: nothing of it is left"
END
DEMO=${DEMO:-yes} chroot "$root" bash /tmp/try.sh
