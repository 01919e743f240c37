#!/usr/bin/env bash
# Builds the Debian packages holorun and holorun-headless of this tree in build/deb: deb.sh [NAME <ADDRESS>]
#
# debhelper needs its folder at the top of a source tree, so the tracked files are copied first. The maintainer is
# DEBFULLNAME and DEBEMAIL, or git's user.
set -euo pipefail
cd "$(dirname "$0")/../.."

name=${DEBFULLNAME:-$(git config user.name || id -un)}
mail=${DEBEMAIL:-$(git config user.email || echo "$(id -un)@$(hostname -f 2>/dev/null || hostname)")}
version=$(sed -n 's/^#define HOLORUN_VERSION "\(.*\)"/\1/p' src/cli/version.h)
when=$(git log -1 --format=%cD 2>/dev/null || date -R)
tree=build/deb/holorun-$version

rm -rf build/deb
mkdir -p "$tree"
if [ -d .git ]; then
    git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$tree" 2>/dev/null || true
else
    tar -c --exclude=./build --exclude=./holorun . | tar -x -C "$tree"
fi
cp -r assets/debian "$tree/debian"
sed -i "s|@MAINTAINER@|$name <$mail>|" "$tree/debian/control"
cat >"$tree/debian/changelog" <<END
holorun ($version) unstable; urgency=medium

  * Built from its source tree${GIT_NOTE:-}.

 -- $name <$mail>  $when
END
(cd "$tree" && DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-parallel=2 nocheck}" dpkg-buildpackage -us -uc -b) >build/deb/log 2>&1 || {
    tail -n 30 build/deb/log >&2
    exit 1
}
mv "$tree"/../*.deb build/deb/ 2>/dev/null || true
ls build/deb/*.deb
