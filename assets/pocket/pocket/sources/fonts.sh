#!/usr/bin/env bash
# Installs the fonts of the training screens, as Debian packages (bookworm). fonts.py names the files, and fails if one
# is missing or the browser draws another.
#
#   fonts.sh        installs them and the toolkits of the windows (toolkit.py); run as root
#   fonts.sh DIR    only unpacks the fonts into DIR, for POCKET_FONTS=DIR; the system's fonts are unchanged
set -euo pipefail
fonts=(fonts-liberation fonts-dejavu-core fonts-dejavu-extra fonts-noto-core fonts-open-sans fonts-roboto-unhinted
    fonts-cantarell fonts-hack)
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    at=$(mktemp -d)
    trap 'rm -rf "$at"' EXIT
    (cd "$at" && apt-get download "${fonts[@]}" 2>&1 | grep -v unsandboxed)
    for package in "$at"/*.deb; do dpkg -x "$package" "$1"; done
    exit 0
fi
apt-get install -y --no-install-recommends fontconfig "${fonts[@]}"
apt-get install -y --no-install-recommends python3-gi gir1.2-gtk-3.0 python3-pyqt5 python3-tk xvfb
