#!/usr/bin/env bash
# Installs the packages for building, testing and the demo.
#
#   install.sh [required|build|compile|desk|demo|pictures|test|typing|qa|deb|bare|slurm|lint ...]     default: build
#
# required: only the packages without which nothing is built; the build then lacks the step window, `serve` and VNC
# viewers. build: these and the packages of those features. compile: those that tests are compiled with, beside build.
# desk: the packages of private desktops. bare: those of the scripts that try holorun in bare systems (bare.sh).
#
# The names are Debian's. They also serve Ubuntu; names of Fedora and Arch are translated. Only Debian was tested. A
# package that the distribution lacks is left out with one line: the build leaves out its feature, and tests are skipped.
#
# Does nothing if all are installed. An ordinary user needs sudo. Exit code 3: the packages could not be installed, and
# the last line names them.
set -euo pipefail

required="gcc make pkg-config libc6-dev libx11-dev libx11-xcb-dev libxau-dev libxcb1-dev libxtst-dev libxext-dev libxfixes-dev libxdamage-dev libxrandr-dev
       libxi-dev libxdo-dev libjansson-dev libpcre2-dev libspng-dev libjpeg-dev libxxhash-dev libmd-dev libyaml-dev
          libglib2.0-dev libdbus-1-dev libcurl4-openssl-dev"
build="$required libsdl2-dev libpango1.0-dev libmicrohttpd-dev libvncserver-dev"
compile="g++ libcmocka-dev libfreetype-dev"
desk="xvfb openbox xauth dbus-daemon at-spi2-core fonts-dejavu-core"
demo="$desk zenity chromium chromium-sandbox x11-utils"
pictures="ffmpeg xterm"
test="$compile tk at-spi2-core dbus-daemon jq xterm zenity yad xclip fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji procps x11-xserver-utils
      libxml2-utils fish zsh python3 python3-pip"
typing="python3-tk python3-gi gir1.2-gtk-3.0 gir1.2-gtk-4.0 python3-pyqt5 default-jre default-jdk-headless firefox-esr"
qa="zenity yad xterm x11-apps l3afpad jq python3 python3-pip libfreetype-dev fontconfig fonts-liberation python3-gi gir1.2-gtk-3.0
    python3-pyqt5 python3-tk"
deb="build-essential debhelper dpkg-dev fakeroot"
bare="debootstrap lintian python3-yaml"
slurm="slurm-wlm munge jq"
lint="clang clang-format clang-tidy cppcheck libclang-rt-14-dev"

# Names of Debian, Fedora and Arch; '-': part of another package. Names that are the same everywhere are not listed.
translations="
pkg-config              pkgconf-pkg-config          pkgconf
libc6-dev               glibc-devel                 glibc
libx11-dev              libX11-devel                libx11
libx11-xcb-dev          -                           -
libxau-dev              libXau-devel                libxau
libxcb1-dev             libxcb-devel                libxcb
libxtst-dev             libXtst-devel               libxtst
libxext-dev             libXext-devel               libxext
libxfixes-dev           libXfixes-devel             libxfixes
libxdamage-dev          libXdamage-devel            libxdamage
libxrandr-dev           libXrandr-devel             libxrandr
libxi-dev               libXi-devel                 libxi
libxdo-dev              libxdo-devel                xdotool
libjansson-dev          jansson-devel               jansson
libpcre2-dev            pcre2-devel                 pcre2
libspng-dev             libspng-devel               libspng
libjpeg-dev             libjpeg-turbo-devel         libjpeg-turbo
libxxhash-dev           xxhash-devel                xxhash
libmd-dev               libmd-devel                 libmd
libyaml-dev             libyaml-devel               libyaml
libglib2.0-dev          glib2-devel                 glib2
libdbus-1-dev           dbus-devel                  dbus
libcurl4-openssl-dev    libcurl-devel               curl
libsdl2-dev             SDL2-devel                  sdl2-compat
libpango1.0-dev         pango-devel                 pango
libmicrohttpd-dev       libmicrohttpd-devel         libmicrohttpd
libvncserver-dev        libvncserver-devel          libvncserver
xvfb                    xorg-x11-server-Xvfb        xorg-server-xvfb
dbus-daemon             dbus-daemon                 dbus
chromium-sandbox        -                           -
fonts-dejavu-core       dejavu-sans-fonts           ttf-dejavu
x11-utils               xwininfo,xprop              xorg-xwininfo,xorg-xprop
xauth                   xorg-x11-xauth              xorg-xauth
g++                     gcc-c++                     gcc
libcmocka-dev           libcmocka-devel             cmocka
libfreetype-dev         freetype-devel              freetype2
fonts-noto-core         google-noto-sans-fonts      noto-fonts
fonts-noto-cjk          google-noto-sans-cjk-fonts  noto-fonts-cjk
fonts-noto-color-emoji  google-noto-color-emoji-fonts noto-fonts-emoji
procps                  procps-ng                   procps-ng
x11-xserver-utils       xset,xrandr,xmodmap,xsetroot xorg-xset,xorg-xrandr,xorg-xmodmap,xorg-xsetroot
libxml2-utils           libxml2                     libxml2
python3                 python3                     python
python3-pip             python3-pip                 python-pip
"

# Ubuntu's package installs a snap.
! grep -q '^ID=ubuntu' /etc/os-release 2>/dev/null || demo=${demo/chromium chromium-sandbox/chromium-browser}

want=""
for set in "${@:-build}"; do
    case $set in
    required | build | compile | desk | demo | pictures | test | typing | qa | deb | bare | slurm | lint) want+=" ${!set}" ;;
    *) echo "install.sh: unknown set '$set'; one of required build compile desk demo pictures test typing qa deb bare slurm lint" >&2; exit 2 ;;
    esac
done

# For each package manager: is_installed NAME, the commands that update lists and install, and known_of NAMES, which
# prints those names that the lists have.
if command -v apt-get >/dev/null; then
    column=1 update="apt-get update -qq" install="apt-get install -y -qq --no-install-recommends"
    is_installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
    known_of() { apt-cache madison "$@" 2>/dev/null | awk '{ print $1 }' | sort -u; }
elif command -v dnf >/dev/null; then
    column=2 update=true install="dnf install -y -q --setopt=install_weak_deps=False"
    is_installed() { rpm -q --quiet --whatprovides "$1" 2>/dev/null; }
    known_of() { dnf repoquery -q --qf '%{name}\n' "$@" 2>/dev/null | sort -u; }
elif command -v pacman >/dev/null; then
    # Arch does not support installing against newer lists without a full upgrade, which is the user's to decide.
    column=3 update=true install="pacman -S --needed --noconfirm --quiet"
    is_installed() { pacman -Qq "$1" >/dev/null 2>&1; }
    known_of() { for p; do ! pacman -Sp "$p" >/dev/null 2>&1 || echo "$p"; done; }
else
    # Assume that the tools are installed if the essential ones are.
    if command -v gcc >/dev/null && command -v pkg-config >/dev/null && pkg-config --exists x11 xtst jansson spng; then
        exit 0
    fi
    echo "install.sh: no apt-get, dnf or pacman; please install what these Debian packages hold:" $want >&2
    exit 3
fi

missing=()
for p in $(awk -v column=$column 'NR == FNR { if (NF == 3) name[$1] = $column; next }
        { p = $1 in name ? name[$1] : $1; gsub(/,/, "\n", p); if (p != "-") print p }' \
        <(echo "$translations") <(printf '%s\n' $want) | awk '!seen[$0]++'); do
    is_installed "$p" || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install.sh: not root and no sudo; as root run: $install ${missing[*]}" >&2
        exit 3
    fi
    if ! sudo true 2>/dev/null; then # it asks for a password on the terminal
        echo "install.sh: sudo refused; as root run: $install ${missing[*]}" >&2
        exit 3
    fi
    as_root=(sudo)
fi
updated=yes
"${as_root[@]}" $update >/dev/null || { updated=no; echo "install.sh: cannot update the lists of packages" >&2; }
mapfile -t known < <(known_of "${missing[@]}")
[ $updated = yes ] || [ ${#known[@]} -gt 0 ] || { echo "install.sh: no lists of packages; not installed: ${missing[*]}" >&2; exit 3; }
mapfile -t unknown < <(printf '%s\n' "${missing[@]}" | grep -vxF "$(printf '%s\n' "${known[@]}")")
[ ${#unknown[@]} -eq 0 ] || echo "install.sh: not in this distribution, what needs it is left out: ${unknown[*]}" >&2
[ ${#known[@]} -gt 0 ] || exit 0
echo "installing: ${known[*]}" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $install "${known[@]}" >/dev/null || {
    echo "install.sh: could not be installed: ${known[*]}" >&2
    exit 3
}
