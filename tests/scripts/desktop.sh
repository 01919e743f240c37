# desktop.sh - a private desktop for demos and tests: Xvfb, a small window manager, a page in Chromium. To be sourced;
# all its programs end with the calling shell. Each program has its own process group, so that Ctrl-C stops only the
# agent, which then reports its state.
#
#   desktop_start WIDTHxHEIGHT       sets DISPLAY
#   desktop_page URL PATTERN         opens URL full screen, waits until a window title matches
#   desktop_title                    prints the page's window title
#   desktop_stop

desktop_pids=()
desktop_tmp=

desktop_start() {
    local size=$1 fd number i
    desktop_tmp=$(mktemp -d)
    trap desktop_stop EXIT
    mkfifo "$desktop_tmp/display"
    exec {fd}<>"$desktop_tmp/display"
    setsid Xvfb -displayfd "$fd" -screen 0 "${size}x24" -dpi 96 -noreset -nolisten tcp >"$desktop_tmp/xvfb.log" 2>&1 &
    desktop_pids+=($!)
    if ! read -r -t 20 -u "$fd" number; then
        echo "the private X server did not start:" >&2
        tail -n 5 "$desktop_tmp/xvfb.log" >&2
        return 3
    fi
    exec {fd}>&-
    export DISPLAY=:$number
    unset WAYLAND_DISPLAY
    setsid openbox --sm-disable >"$desktop_tmp/openbox.log" 2>&1 &
    desktop_pids+=($!)
    for ((i = 0; i < 100; i++)); do # a window opened before the window manager may never become active
        xprop -root _NET_SUPPORTING_WM_CHECK 2>/dev/null | grep -q 0x && return 0
        sleep 0.1
    done
    echo "the window manager did not start:" >&2
    tail -n 5 "$desktop_tmp/openbox.log" >&2
    return 3
}

# Starts Chromium with a new profile; its sandbox does not work as root.
desktop_browser() {
    local sandbox=()
    [ "$(id -u)" -eq 0 ] && sandbox=(--no-sandbox --test-type)
    : "${desktop_tmp:=$(mktemp -d)}"
    local program
    program=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
        echo "no Chromium found (chromium, chromium-browser, google-chrome)" >&2
        return 3
    }
    HOME=$desktop_tmp setsid "$program" "${sandbox[@]}" --user-data-dir="$desktop_tmp/profile" --no-first-run \
        --no-default-browser-check --password-store=basic --disable-gpu --disable-dev-shm-usage \
        --force-device-scale-factor=1 --disable-features=Translate --disable-sync --disable-background-networking \
        --allow-file-access-from-files "$@" >"$desktop_tmp/chromium.log" 2>&1 &
    desktop_pids+=($!)
}

desktop_page() {
    local url=$1 pattern=$2 i
    desktop_browser --kiosk "$url" || return
    for ((i = 0; i < 300; i++)); do
        if desktop_title | grep -qE -- "$pattern"; then
            sleep 0.3
            return 0
        fi
        sleep 0.1
    done
    echo "the browser did not show '$url' within 30 s:" >&2
    tail -n 5 "$desktop_tmp/chromium.log" >&2
    return 3
}

# Prints the title of the newest browser window, without the browser's name.
desktop_title() {
    local window
    window=$(xprop -root _NET_ACTIVE_WINDOW 2>/dev/null | sed -n 's/.*# \(0x[0-9a-f]*\).*/\1/p')
    [ -n "$window" ] || return 0
    xprop -id "$window" _NET_WM_NAME 2>/dev/null | sed -n 's/^[^=]* = "\(.*\)"$/\1/p' | sed 's/ - Chromium$//'
}

desktop_stop() {
    local pid
    trap - EXIT
    for ((i = ${#desktop_pids[@]} - 1; i >= 0; i--)); do
        pid=${desktop_pids[i]}
        kill "$pid" 2>/dev/null
    done
    for pid in "${desktop_pids[@]}"; do
        for ((i = 0; i < 30; i++)); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -9 "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    desktop_pids=()
    [ -n "$desktop_tmp" ] && rm -rf "$desktop_tmp"
    desktop_tmp=
}
