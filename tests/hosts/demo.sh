#!/usr/bin/env bash
# The demo through `holorun mcp`: an MCP client requests the flight, and the page reports whether it was booked.
#
#   PYTHON=...   an interpreter with the package mcp (pip install mcp)
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/scripts/desktop.sh

task="Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima"
desktop_start 640x480 || exit 3
desktop_page "file://$PWD/assets/demo/flight.html?seed=1000102" '^Flights' || exit 3
"${PYTHON:-python3}" tests/hosts/demo.py "$task"
title=$(desktop_title)
echo "the page says: $title"
printf '%s' "$title" | grep -qE '^BOOKED Paris>Rome\|12 May\|9:40\|Ana Lima'
