#!/usr/bin/env bash
# Runs our suites with the embedded model and reports success rates.
#
#   SUITE="miniwob flights dialogs desktop"   suites of tests/suites; also toolkits, windows, forms, waits, crowd
#                                             and example
#   SEEDS=20                                  seeds per MiniWoB++ page: fewer are faster and less precise
#   JOBS=4                                    parallel tests
#
# Prints tables and writes them to tests/results/qa-SUITE.md (with fewer seeds: build/qa/SUITE.md), with 95 % intervals
# (Wilson); reports, frames and the record of every run are in build/qa/results/SUITE. Failed tests are a result, not an
# error.
set -uo pipefail
cd "$(dirname "$0")/../.."
suites=${SUITE:-miniwob flights dialogs desktop} seeds=${SEEDS:-20} jobs=${JOBS:-4}

# Prints for each group of tests (by its last tag) how many passed, the total, and the outcomes of the others. A failed
# test with partial reward (a check with that name) is counted separately.
table() {
    jq -r 'def partial: (.attempts | last | .checks // []) | any(.name == "no partial reward" and .answer == "no");
           .tests[] | [(.tags | last // "(no tag)"), if .outcome == "failed" and partial then "partial" else .outcome end] | @tsv' "$1" | LC_ALL=C awk -F'\t' '
        function percent(x) { return sprintf("%.0f", 100 * x) }
        function row(name, hits, n, other,   z, p, c, h) {
            z = 1.959963984540054; p = hits / n
            c = (p + z * z / n / 2) / (1 + z * z / n)
            h = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / n / (4 * n))
            printf "| %s | %d | %d | %s %% | %s - %s | %s |\n", name, hits, n, percent(p),
                   percent(hits ? c - h : 0), percent(hits < n ? c + h : 1), other
        }
        function others(group,   o, text) {
            for (o = 1; o <= kinds; o++)
                if (what[group, kind[o]]) text = text (text ? ", " : "") what[group, kind[o]] " " kind[o]
            return text
        }
        BEGIN { kinds = split("partial failed claimed inconclusive error skipped stopped", kind, " ") }
        !($1 in n) { order[++groups] = $1 }
        { n[$1]++; hits[$1] += $2 == "passed"; what[$1, $2]++; what["", $2]++; all++; right += $2 == "passed" }
        END {
            print "| tests | passed | of | | 95 % | others |"
            print "|---|---|---|---|---|---|"
            for (g = 1; g <= groups; g++) row(order[g], hits[order[g]], n[order[g]], others(order[g]))
            if (all) row("all of them", right, all, others(""))
        }'
}

worst=0
for suite in $suites; do
    out=build/qa/results/$suite only=() file=tests/results/qa-$suite.md
    if [ ! -r "tests/suites/$suite.yaml" ]; then
        echo "qa.sh: there is no tests/suites/$suite.yaml" >&2
        exit 2
    fi
    if [ "$suite" = miniwob ]; then
        tests/scripts/miniwob.sh || exit $?
        for ((k = 0; k < seeds && seeds < 20; k++)); do only+=(--only "*-$((1000000 + k))"); done
        [ "$seeds" -lt 20 ] && file=build/qa/$suite.md
    fi
    rm -rf "$out"
    mkdir -p "$out" tests/results
    echo "== $suite, $jobs at once" >&2
    ./holorun qa "tests/suites/$suite.yaml" --jobs "$jobs" --out "$out" "${only[@]}"
    code=$?
    case $code in
    0 | 1 | 5) ;;
    *) [ "$code" -gt "$worst" ] && worst=$code ;;
    esac
    [ -r "$out/results.json" ] || continue
    {
        jq -r '"\(.suite): \(.counts.passed) of \(.counts.total) passed; \(.jobs) at once, \(.seconds | round) s, at most \(.memory.most / 1048576 | round) MiB of memory\n"' \
            "$out/results.json"
        table "$out/results.json"
        echo
        find "$out/runs" -name events.jsonl -print0 | xargs -0 tests/bench/step_times.sh
    } | tee "$file"
done
exit $worst
