#!/usr/bin/env bash
# One scripted episode on a page: the whole program except the model, with real pixels, events and browser.
#
#   episode.sh HOLORUN PAGE REPLIES RUNS [OPTION ...]     prints the last window title of the page
#
# Exit code: that of holorun; 77 if Xvfb, openbox or Chromium are not installed.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/scripts/desktop.sh
program=$1 page=$2 replies=$3 runs=$4
shift 4
for need in Xvfb openbox chromium xprop; do
    command -v "$need" >/dev/null || exit 77
done
desktop_start 640x480 || exit 3
desktop_page "file://$PWD/assets/demo/$page" '^(Flights|DIALOG)' || exit 3
"$program" run --confirm yes-to-all --quiet --dialect pocket-wide --fake "$replies" --runs "$runs" "$@" "a scripted task" >&2
code=$?
desktop_title
exit $code
