#!/usr/bin/env bash
# Runs the suites of dialogs, desktops and forms with generated scripts that solve them, to show that each test can
# pass.
#
#   SUITE="toolkits windows forms"   suites      JOBS=4   parallel tests      HOLORUN=./holorun   the program
#
# Scripts are in build/qa/right/SUITE, reports in build/qa/results/SUITE-right. Fails if a test does not pass.
set -uo pipefail
cd "$(dirname "$0")/../.."
worst=0
for suite in ${SUITE:-toolkits windows forms}; do
    right=build/qa/right/$suite out=build/qa/results/$suite-right
    case $suite in
    toolkits) make=(tests/scripts/toolkit_cases.py) ;;
    windows) make=(tests/scripts/toolkit_cases.py --windows) ;;
    forms) make=(tests/scripts/form_cases.py) ;;
    *) echo "qa_right.sh: there are no scripts for the suite '$suite'; toolkits, windows and forms have them" >&2; exit 2 ;;
    esac
    "${make[@]}" | cmp -s - "tests/suites/$suite.yaml" ||
        { echo "qa_right.sh: tests/suites/$suite.yaml is not what ${make[*]} writes" >&2; exit 1; }
    rm -rf "$right" "$out"
    "${make[@]}" --right "$right" || exit $?
    "${HOLORUN:-./holorun}" qa "tests/suites/$suite.yaml" --jobs "${JOBS:-4}" --dialect pyautogui --fake "$right" --out "$out" || worst=$?
done
exit $worst
