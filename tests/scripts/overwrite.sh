#!/usr/bin/env bash
# Replaces the text of a field in real programs on ten keyboard layouts, and writes tests/results/overwrite.md.
#
#   overwrite.sh [LAYOUTS]      LAYOUTS: number of layouts, at most 10 (default 10)
#
# Programs that are not installed are listed as skipped. T=PROGRAM uses this t_overwrite instead of the built one.
set -uo pipefail
cd "$(dirname "$0")/../.."
layouts=${1:-10} program=${T:-${B:-build/release}/tests/t_overwrite}
rows=$(mktemp)
trap 'rm -f "$rows" "$rows.log"' EXIT
HOLORUN_OVERWRITE_LAYOUTS=$layouts HOLORUN_OVERWRITE_RESULT=$rows "$program" 'overwrite' >"$rows.log" 2>&1
failed=$?
cat "$rows.log" >&2
{
    echo "# overwrite in real programs"
    echo
    echo "$(date -u '+%e %B %Y' | sed 's/^ //'), \`tests/scripts/overwrite.sh $layouts\`, $(nproc) cores" \
        "($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), Xvfb, openbox;" \
        "load at the end $(cut -d' ' -f1-3 /proc/loadavg)."
    echo
    echo "Each action writes one of seven texts (four scripts, an empty text, several lines in multi-line fields) over the"
    echo "text of the previous action, with the cursor at a random position, on the first $layouts of the layouts us, ru,"
    echo "us(dvorak), de, fr, gr, il, ara, jp, tr. The program itself reports the content of its field (tests/screen/t_overwrite.c). \"unsure\": the action reported that the"
    echo "field could not be read back. \"failed\": the action failed and reported the content of the field."
    echo
    echo "| field | actions | correct | unsure | failed | wrong and reported as done | ms each |"
    echo "|---|---|---|---|---|---|---|"
    sort "$rows"
    echo
    echo "A password field shows one symbol per character, so it stays unsure. Writer capitalizes the first letter of a"
    echo "sentence; these actions fail and report the text of the document. In xterm with bash or vim, also under another class,"
    echo "overwrite is refused and no event is sent."
    sed -n 's/^ *\(.* is not installed\)$/\nSkipped: \1./p' "$rows.log"
} >tests/results/overwrite.md
[ "$failed" -eq 0 ]
