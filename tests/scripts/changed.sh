#!/usr/bin/env bash
# Reads names of C sources and prints those that have changed, the latest change first, at most 120 of them.
#
#   ls src/*/*.c | changed.sh
#
#   LINT=all             all sources
#   LINT_BASE=COMMIT     changed since this commit; default: since HEAD left the branch of origin, or, on that branch, since
#                        the newest commit that is a day older than HEAD
#
# A source has changed if it differs from that commit, or a header that it includes does; $B (build/release) holds the
# compiler's lists of headers. Without such a commit, as in a shallow clone or an archive, an eighth of all sources is
# printed; which one depends on HEAD.
set -uo pipefail
most=120 parts=8
B=${B:-build/release}
mapfile -t sources

# Prints the commit from which changes count.
base() {
    local left day=$((24 * 60 * 60))
    if [ -n "${LINT_BASE:-}" ]; then
        git rev-parse -q --verify "$LINT_BASE^{commit}"
    elif left=$(git merge-base HEAD origin/HEAD) && [ "$left" != "$(git rev-parse HEAD)" ]; then
        echo "$left"
    else
        git rev-list -1 --before=$(($(git log -1 --format=%ct) - day)) HEAD
    fi 2>/dev/null
}

# Prints an eighth of the sources.
part() {
    local head
    head=$(git rev-parse -q --verify HEAD 2>/dev/null) || head=$(date +%j)
    printf '%s\n' "${sources[@]}" | awk -v which=$((16#${head:0:6} % parts)) -v parts=$parts 'NR % parts == which'
}

# Prints the files that differ from commit $1.
changed() {
    git ls-files -mo --exclude-standard
    git diff --cached --name-only
    git log --format= --name-only "$1..HEAD"
}

# Reads names of changed files; prints the sources among them, then the sources that include one of them.
affected() {
    awk -v B="$B" '
        FILENAME == "-" { if (!seen[$0]++) changed[++n] = $0; next }
        { source[$0]; d = B "/" substr($0, 1, length($0) - 2) ".d"
          while ((getline line < d) > 0) headers[$0] = headers[$0] " " line
          close(d) }
        END { for (i = 1; i <= n; i++) if (changed[i] in source) { print changed[i]; delete source[changed[i]] }
              for (s in source) { k = split(headers[s], h, /[ :\\]+/)
                  for (i = 1; i <= k; i++) if (h[i] in seen) { print s; break } } }' - <(printf '%s\n' "${sources[@]}")
}

if [ "${LINT:-}" = all ]; then
    printf '%s\n' "${sources[@]}"
elif from=$(base) && [ -n "$from" ]; then
    mapfile -t found < <(changed "$from" | affected)
    [ ${#found[@]} -le $most ] ||
        echo "changed.sh: ${#found[@]} sources have changed since ${from:0:8}; $most are taken, make nightly takes all" >&2
    [ ${#found[@]} -eq 0 ] || printf '%s\n' "${found[@]:0:most}"
else
    echo "changed.sh: no commit to compare with; an eighth of the sources is taken, make nightly takes all" >&2
    part
fi
