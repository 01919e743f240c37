#!/usr/bin/env bash
# Installs the Debian packages for building, testing and the demo.
#
#   install.sh [required|build|demo|pictures|test|typing|qa|deb|slurm|lint ...]     default: build
#
# required: only the packages without which nothing is built; the build then lacks the step window, `serve` and VNC
# viewers. build: these and the packages of those features.
#
# Does nothing if all are installed. As an ordinary user it calls sudo once. Without apt it prints the list of packages
# and exits with code 3.
set -euo pipefail

required="gcc make pkg-config libc6-dev libx11-dev libx11-xcb-dev libxau-dev libxcb1-dev libxtst-dev libxext-dev libxfixes-dev libxdamage-dev libxrandr-dev
       libxi-dev libxdo-dev libjansson-dev libpcre2-dev libspng-dev libjpeg62-turbo-dev libxxhash-dev libmd-dev libyaml-dev
          libglib2.0-dev libdbus-1-dev libcurl4-openssl-dev"
build="$required libsdl2-dev libpango1.0-dev libmicrohttpd-dev libvncserver-dev"
demo="xvfb openbox zenity dbus-daemon at-spi2-core chromium chromium-sandbox fonts-dejavu-core x11-utils xauth"
pictures="ffmpeg xterm"
test="tk at-spi2-core dbus-daemon g++ libcmocka-dev libfreetype-dev jq xterm zenity xclip fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji procps x11-xserver-utils
      libxml2-utils fish zsh python3 python3-pip"
typing="python3-tk python3-gi gir1.2-gtk-3.0 gir1.2-gtk-4.0 python3-pyqt5 openjdk-17-jre openjdk-17-jdk-headless firefox-esr"
qa="zenity yad xterm x11-apps l3afpad jq python3 python3-pip libfreetype-dev fontconfig fonts-liberation python3-gi gir1.2-gtk-3.0
    python3-pyqt5 python3-tk"
deb="debhelper dpkg-dev fakeroot lintian debootstrap systemd"
slurm="slurm-wlm munge jq"
lint="clang clang-format clang-tidy cppcheck libclang-rt-14-dev"

want=""
for set in "${@:-build}"; do
    case $set in
    required | build | demo | pictures | test | typing | qa | deb | slurm | lint) want+=" ${!set}" ;;
    *) echo "install.sh: unknown set '$set'; one of required build demo pictures test typing qa deb slurm lint" >&2; exit 2 ;;
    esac
done

missing=()
if command -v dpkg-query >/dev/null; then
    for p in $want; do
        dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
    done
    [ ${#missing[@]} -eq 0 ] && exit 0
fi

if ! command -v apt-get >/dev/null; then
    # Without apt, assume the tools are installed if the essential ones are.
    if command -v gcc >/dev/null && command -v pkg-config >/dev/null && pkg-config --exists x11 xtst jansson spng; then
        exit 0
    fi
    echo "install.sh: no apt here; please install what these Debian packages hold:" >&2
    echo "$want" | tr -s ' \n' '\n' | sed '/^$/d; s/^/  /' >&2
    exit 3
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install.sh: not root and no sudo; as root run: apt-get install ${missing[*]}" >&2
        exit 3
    fi
    as_root=(sudo)
fi
echo "installing: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive exec apt-get install -y -qq --no-install-recommends "$@"' \
    sh "${missing[@]}" >/dev/null
