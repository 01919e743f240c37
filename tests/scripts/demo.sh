#!/usr/bin/env bash
# The demo: holorun books a flight on the shipped page, and the page reports whether it succeeded.
#
#   TASK="…"   another task                      SEED=n   another flight page
#   ON=:0      use this display instead of a private one (the page opens in a window of its own)
#   SERVED=1   the model runs behind `holorun serve`, in a separate process
#
# Exit code 0 only if the window title of the page confirms a booking, and for the default task exactly the requested
# one. For another task the booking is only printed.
set -uo pipefail
cd "$(dirname "$0")"
if [ -e flight.html ]; then # installed, beside its page
    pages=$PWD holorun=holorun
    . ./desktop.sh
else
    cd ../..
    pages=$PWD/assets/demo holorun=./holorun
    . tests/scripts/desktop.sh
fi

shipped="Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima"
task=${TASK:-$shipped}
page="file://$pages/flight.html?seed=${SEED:-1000102}"
view=all

flights() { xwininfo -root -tree 2>/dev/null | sed -n 's/^ *\(0x[0-9a-f]*\) "Flights.*/\1/p'; }

if [ -n "${ON:-}" ]; then
    export DISPLAY=$ON
    xprop -root >/dev/null 2>&1 || { echo "cannot open display '$ON'; is it running, and may you use it?" >&2; exit 3; }
    trap desktop_stop EXIT
    others=$(flights)
    desktop_browser --app="$page" --window-size=640,480 || exit 3
    for ((i = 0; i < 200; i++)); do
        window=$(flights | grep -vxF -- "${others:-none}" | head -n 1)
        [ -n "$window" ] && break
        sleep 0.1
    done
    if [ -z "${window:-}" ]; then
        echo "the page did not open on display $ON:" >&2
        tail -n 5 "$desktop_tmp/chromium.log" >&2
        exit 3
    fi
    sleep 0.5
    view=window:$window
else
    desktop_start 640x480 || exit 3
    desktop_page "$page" '^Flights' || exit 3
fi

far=()
if [ -n "${SERVED:-}" ]; then
    "$holorun" serve --listen 127.0.0.1:0 --token-file "$desktop_tmp/token" >"$desktop_tmp/url" &
    desktop_pids+=($!)
    for ((i = 0; i < 300; i++)); do
        [ -s "$desktop_tmp/url" ] && break
        sleep 0.1
    done
    far=(--base-url "$(cat "$desktop_tmp/url")" --key "file:$desktop_tmp/token" --dialect pocket-wide)
fi

# Starting the demo requests the booking, so the rules need not ask.
"$holorun" run --confirm yes-to-all --view "$view" "${far[@]}" "$task"
code=$?
[ "$code" -eq 130 ] && exit 130
title=$(if [ -n "${ON:-}" ]; then xprop -id "$window" _NET_WM_NAME | sed -n 's/^[^=]* = "\(.*\)"$/\1/p'; else desktop_title; fi)

want='^BOOKED '
[ "$task" = "$shipped" ] && want='^BOOKED Paris>Rome\|12 May\|9:40\|Ana Lima'
if printf '%s' "$title" | grep -qE -- "$want"; then
    [ "$task" = "$shipped" ] && echo "the page confirms: $title" || echo "the page says what it has booked: $title"
    exit 0
fi
echo "the page does not confirm a booking as asked; its title is: $title"
[ "$code" -ne 0 ] && exit "$code"
exit 1
