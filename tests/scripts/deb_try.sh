#!/usr/bin/env bash
# Tests each package of build/deb in a bare Debian with only the package and its dependencies: every command answers, units
# are accepted, the demo books its flight from the installed files; then the package is removed and must leave no file.
# holorun-headless must not install SDL, Pango or libvncserver. Needs root.
#
#   SUITE=bookworm    the Debian that the packages were built on (default: this system's)
#   DEMO=no           skips the demo, which needs a browser (300 MB)
#
# bare.sh has the other settings.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/scripts/bare.sh
suite=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
most=$((30 * 1024)) # KiB installed

packages=$(ls build/deb/holorun_*.deb build/deb/holorun-headless_*.deb) || { echo "deb_try.sh: no packages in build/deb; make deb" >&2; exit 2; }

# As a separate user: nothing in the package is for root only.
as_user() {
    cat <<'END_USER'
set -eu
export HOME=/home/someone LANG=C.UTF-8
cd
holorun version
holorun license | head -n 3
for command in $(holorun help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do holorun help "$command" >/dev/null; done
holorun inspect >/dev/null
[ "$1" = no ] || bash /usr/share/holorun/demo/demo.sh
END_USER
}

# $1: name of the package, $2: "no" without the demo, $3: the most KiB installed.
as_root() {
    cat <<'END_ROOT'
set -eu
apt-get update -qq
apt-get install -y -qq --no-install-recommends /tmp/holorun.deb >/tmp/install.log 2>&1 || { tail -n 20 /tmp/install.log; exit 1; }
dpkg -L $1 | sort >/tmp/files
size=$(dpkg-query -W -f '${Installed-Size}' $1)
echo "installed: $(wc -l </tmp/files) files, $size KiB, $(dpkg-query -W | wc -l) packages in the system"
[ "$size" -le "$3" ] || { echo "larger than $3 KiB"; exit 1; }
windows=$(dpkg-query -W -f '${Package}\n' | grep -E '^lib(sdl|pango|vncserver)' || true)
[ "$1" != holorun-headless ] || [ -z "$windows" ] || { echo "installed with it:" $windows; exit 1; }
useradd -m someone
[ "$2" = no ] || apt-get install -y -qq --no-install-recommends xvfb openbox xauth chromium chromium-sandbox x11-utils fonts-dejavu-core \
    >/tmp/demo.log 2>&1 || { tail -n 20 /tmp/demo.log; exit 1; }
su someone -s /bin/bash -c "bash /tmp/as_user.sh $2"
apt-get install -y -qq --no-install-recommends systemd >/dev/null 2>&1
for unit in /usr/lib/systemd/user/holorun-*.service; do
    XDG_RUNTIME_DIR=/tmp systemd-analyze verify --user --man=no "$unit"
    systemd-analyze security --offline=true --no-pager --threshold=60 "$unit" | tail -n 1
done
apt-get purge -y -qq $1 >/dev/null 2>&1
left=$(while read -r file; do [ -d "$file" ] || [ ! -e "$file" ] || echo "$file"; done </tmp/files)
[ -z "$left" ] || { echo "left after removal: $left"; exit 1; }
! ls -d /usr/share/holorun 2>/dev/null || exit 1
echo "removed: nothing of it is left"
END_ROOT
}

lintian --profile debian --fail-on error $packages || exit 1
for package in $packages; do
    name=$(basename "${package%%_*}")
    echo "== $name in $suite"
    bare_fresh "$suite" deb-try
    cp "$package" "$bare/deb-try/tmp/holorun.deb"
    as_user >"$bare/deb-try/tmp/as_user.sh"
    as_root >"$bare/deb-try/tmp/as_root.sh"
    bare_inside deb-try bash /tmp/as_root.sh "$name" "${DEMO:-yes}" $most || exit 1
done
rm -rf "$bare/deb-try"
