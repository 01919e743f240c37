#!/bin/sh
# browser.sh [FLAG...] URL - starts Chromium in full screen for a test, with everything disabled that a local page does not
# need.  Its profile is in HOME.
set -eu
[ "$(id -u)" -eq 0 ] && set -- --no-sandbox --test-type "$@" # its sandbox cannot work as root
exec chromium --user-data-dir="$HOME/profile" --kiosk --no-first-run --no-default-browser-check --password-store=basic \
    --disable-gpu --disable-dev-shm-usage --disable-extensions --disable-component-update --disable-background-networking \
    --disable-sync --disable-breakpad --disable-default-apps --no-pings --disable-client-side-phishing-detection \
    --disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication --renderer-process-limit=1 \
    --allow-file-access-from-files "$@"
