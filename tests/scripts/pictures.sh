#!/usr/bin/env bash
# Makes the pictures of README.md in assets/pictures from real runs of ./holorun.
#
#   pictures.sh [run] [step] [report] [qa]      default: all four
#
#   run      run.webp, animated: a terminal with the command, and the page that the run works on
#   step     step.png: the step window at step 5 of the same task
#   report   report.png: the report of a run of the same task
#   qa       qa.png: the report of a suite
#
# The animation leaves out the time in which nothing changes on the display.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/scripts/desktop.sh

# A copy of the program and its data, because the reports show their paths.
out=$PWD/assets/pictures
work=$(mktemp -d /tmp/demo.XXXX)
trap 'rm -rf "$work"' EXIT
mkdir "$work/holorun"
cp -r --parents holorun assets/pocket/model assets/pocket/wide assets/demo tests/suites tests/scripts "$work/holorun"
cd "$work/holorun" || exit 3

task="Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima"
page="file://$PWD/assets/demo/flight.html?seed=1000102"
export HOLORUN_RUNS=$work/runs HOLORUN_CONFIRM=yes-to-all PATH=$PWD:$PATH

fail() { echo "pictures.sh: $1" >&2; exit 1; }

# Waits up to 60 s until the command "$@" succeeds.
await() {
    for ((i = 0; i < 600; i++)); do
        "$@" && return
        sleep 0.1
    done
    fail "gave up after 60 s: $*"
}
reached() { [ "$(grep -c settle "$work/step.log")" -ge "$1" ]; }
has_window() { xwininfo -display "$1" -root -tree 2>/dev/null | grep -qE -- "$2"; }

# Prints a page ($1) with headless Chromium into the file $2, $3 pixels wide and $4 high.
print_page() {
    local sandbox=()
    [ "$(id -u)" -eq 0 ] && sandbox=(--no-sandbox)
    rm -f "$2"
    HOME=$work chromium "${sandbox[@]}" --headless --disable-gpu --hide-scrollbars --user-data-dir="$work/headless" \
        --window-size="$3,$4" --virtual-time-budget=4000 --screenshot="$2" "$1" >"$work/headless.log" 2>&1
    [ -s "$2" ] || fail "$(tail -n 3 "$work/headless.log")"
}

picture_run() {
    local recorder
    desktop_start 1082x510 || exit 3
    desktop_browser --app="$page" --window-size=640,480 --window-position=438,2
    await has_window "$DISPLAY" '"Flights'
    sleep 1
    printf '%s\n' "echo '\$ holorun \"$task\"'" "sleep 1; holorun '$task'; touch '$work/done'; sleep 60" >"$work/typed"
    ffmpeg -y -loglevel error -f x11grab -framerate 8 -video_size 1082x510 -i "$DISPLAY" -c:v ffv1 "$work/run.mkv" &
    recorder=$!
    # The window manager does not manage the terminal, so the browser stays the active window.
    xterm -xrm 'XTerm*overrideRedirect: true' -geometry 58x32+2+6 -fa 'DejaVu Sans Mono' -fs 9 -bg '#16181d' \
        -fg '#e6e6e6' -b 8 -e bash "$work/typed" &
    desktop_pids+=($!)
    await test -e "$work/done"
    sleep 1
    kill -INT "$recorder"
    wait "$recorder"
    [[ $(desktop_title) == "BOOKED Paris>Rome|12 May|9:40|Ana Lima"* ]] || fail "the page does not confirm the booking"
    # hi: a blinking caret is not a change.
    ffmpeg -y -loglevel error -i "$work/run.mkv" -c:v libwebp_anim -lossless 1 -compression_level 6 -loop 0 -r 3 \
        -vf "mpdecimate=hi=2500:lo=640,setpts=N/(3*TB),tpad=stop_mode=clone:stop_duration=4" "$out/run.webp"
}

# The page is on one private display, the step window on another.
picture_step() {
    local number fd
    desktop_start 640x480 || exit 3
    desktop_page "$page" '^Flights' || exit 3
    mkfifo "$work/window"
    exec {fd}<>"$work/window"
    setsid Xvfb -displayfd "$fd" -screen 0 1280x850x24 -dpi 96 -noreset -nolisten tcp >/dev/null 2>&1 &
    desktop_pids+=($!)
    read -r -t 20 -u "$fd" number || fail "the second X server did not start"
    holorun run --step=window --ui-display ":$number" --break "step 5" "$task" >"$work/step.log" 2>&1 &
    desktop_pids+=($!)
    await has_window ":$number" '"holorun'
    await reached 4
    sleep 5
    ffmpeg -y -loglevel error -f x11grab -draw_mouse 0 -video_size 1280x820 -i ":$number" -frames:v 1 "$out/step.png"
    holorun stop >/dev/null
}

picture_report() {
    desktop_start 640x480 || exit 3
    desktop_page "$page" '^Flights' || exit 3
    holorun run -q "$task" || fail "the run failed"
    print_page "file://$(echo "$HOLORUN_RUNS"/*/report.html)#step-5" "$out/report.png" 1180 760
}

picture_qa() {
    holorun qa tests/suites/flights.yaml --jobs 3 --out "$work/qa"
    print_page "file://$work/qa/report.html" "$out/qa.png" 1180 1000
}

for name in ${*:-run step report qa}; do
    rm -rf "${HOLORUN_RUNS:?}" "$work/done"
    ("picture_$name") || exit
done
