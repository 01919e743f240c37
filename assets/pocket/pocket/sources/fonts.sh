#!/usr/bin/env bash
# The fonts that the training world is drawn in, as Debian packages (bookworm).
# fonts.py names the files and refuses to draw when one of them is missing or another one is drawn.
#
#   fonts.sh        installs them, and what the windows of desktop toolkits need (toolkit.py); run as root
#   fonts.sh DIR    unpacks the fonts alone into DIR, for POCKET_FONTS=DIR; the machine's own fonts stay as they are
set -euo pipefail
fonts=(fonts-liberation fonts-dejavu-core fonts-dejavu-extra fonts-noto-core fonts-open-sans fonts-roboto-unhinted
    fonts-cantarell fonts-hack fonts-lato fonts-inter fonts-freefont-ttf)
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
