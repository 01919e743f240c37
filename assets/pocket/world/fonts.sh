#!/usr/bin/env bash
# The fonts that the training world is drawn in, as Debian packages (bookworm); run as root.
# fonts.py names the files and refuses to draw when one of them is missing or another one is drawn.
set -euo pipefail
apt-get install -y --no-install-recommends fontconfig fonts-liberation fonts-dejavu-core fonts-dejavu-extra \
    fonts-noto-core fonts-open-sans fonts-roboto-unhinted fonts-cantarell fonts-hack fonts-lato fonts-inter fonts-freefont-ttf
# For the windows of desktop toolkits (toolkit.py).
apt-get install -y --no-install-recommends python3-gi gir1.2-gtk-3.0 python3-pyqt5 python3-tk xvfb
