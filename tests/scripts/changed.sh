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
# compiler's lists of headers. If the linter has changed, or without such a commit, as in a shallow clone or an archive,
# an eighth of all sources is printed, too. Of more than 120, the 90 latest are printed and up to 30 of the others. HEAD
# decides which eighth and which others. The base is named on stderr.
set -uo pipefail
most=120 latest=90 parts=8
linter="Makefile .clang-format .clang-tidy tests/scripts/lint.sh tests/scripts/changed.sh"
B=${B:-build/release}
mapfile -t sources

# Prints the commit from which changes count.
base() {
    local branch left day=$((24 * 60 * 60))
    if [ -n "${LINT_BASE:-}" ]; then
        git rev-parse -q --verify "$LINT_BASE^{commit}"
        return
    fi
    for branch in origin/HEAD origin/main origin/master; do
        left=$(git merge-base HEAD $branch) || continue
        [ "$left" != "$(git rev-parse HEAD)" ] || break
        echo "$left"
        return
    done
    git rev-list -1 --before=$(($(git log -1 --format=%ct) - day)) HEAD
} 2>/dev/null

# Reads lines and prints one in $1 of them.
part() {
    local head
    head=$(git rev-parse -q --verify HEAD 2>/dev/null) || head=$(date +%j)
    awk -v which=$((16#${head:0:6} % $1)) -v parts="$1" 'NR % parts == which'
}

# Prints the files that differ from commit $1; the log has their order, but no edits of merge commits.
changed() {
    git ls-files -mo --exclude-standard
    git diff --cached --name-only
    git log --format= --name-only "$1..HEAD"
    git diff --name-only "$1" HEAD
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

# Prints an eighth of the sources.
eighth() {
    printf '%s\n' "${sources[@]}" | part $parts
}

if [ "${LINT:-}" = all ]; then
    printf '%s\n' "${sources[@]}"
elif from=$(base) && [ -n "$from" ]; then
    echo "changed.sh: changes since $(git log -1 --format='%h of %ci' "$from")" >&2
    files=$(changed "$from")
    mapfile -t found < <({
        affected <<<"$files"
        ! grep -qxF "${linter// /$'\n'}" <<<"$files" || eighth
    } | awk '!seen[$0]++')
    rest=$((${#found[@]} - latest))
    if [ ${#found[@]} -gt $most ]; then
        echo "changed.sh: of ${#found[@]} sources at most $most are taken, make nightly takes all" >&2
        printf '%s\n' "${found[@]:0:latest}"
        printf '%s\n' "${found[@]:latest}" | part $(((rest + most - latest - 1) / (most - latest)))
    elif [ ${#found[@]} -gt 0 ]; then
        printf '%s\n' "${found[@]}"
    fi
else
    echo "changed.sh: no commit to compare with; an eighth of the sources is taken, make nightly takes all" >&2
    eighth
fi
