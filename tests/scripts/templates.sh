#!/usr/bin/env bash
# Copies the chat templates of the package trl to build/templates, for tests that render them.
#
#   templates.sh [FOLDER]     default: build/templates
#
# Does nothing if they exist. Without a network or pip it prints one line and exits with 0: those tests are skipped.
set -euo pipefail

version=1.16.0
sha256=c4726e139dd40e1a41661511c639c8a68416782b2e3e8c0befebd77bb7ba0396
folder=${1:-build/templates}
wheel=trl-$version-py3-none-any.whl
[ "$(cat "$folder/VERSION" 2>/dev/null)" = "trl $version" ] && exit 0

skip() {
    echo "templates.sh: no chat templates ($1): tests that render with published ones are skipped" >&2
    exit 0
}

command -v python3 >/dev/null || skip "python3 is not installed"
python3 -m pip --version >/dev/null 2>&1 || skip "pip is not installed"
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
timeout 30 python3 -m pip --disable-pip-version-check download -q --no-deps --only-binary :all: --ignore-requires-python \
    --retries 0 --timeout 5 -d "$room" "trl==$version" >"$room/log" 2>&1 || skip "pip cannot download trl $version"
[ -f "$room/$wheel" ] || skip "pip downloaded no $wheel"
echo "$sha256  $room/$wheel" | sha256sum --check --quiet --status || {
    echo "templates.sh: $wheel has the SHA-256 $(sha256sum <"$room/$wheel" | cut -d' ' -f1), expected $sha256; remove pip's cache, or" \
        "change the version and hash here together" >&2
    exit 1
}
python3 - "$room/$wheel" "$room/new" <<'END'
import os
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as z:
    os.mkdir(sys.argv[2])
    for name in z.namelist():
        folder, file = os.path.split(name)
        if folder == "trl/chat_templates" and file.endswith(".jinja"):
            with open(os.path.join(sys.argv[2], file), "wb") as f:
                f.write(z.read(name))
END
echo "trl $version" >"$room/new/VERSION"
mkdir -p "$(dirname "$folder")"
rm -rf "$folder"
cp -r "$room/new" "$folder"
