#!/usr/bin/env bash
# Runs the benchmark on a GPU; prints it with a description of the machine, and writes DIR/DATE-CARD.json and .md.
#
#   bench_gpu.sh HOLORUN        (make bench-gpu builds it and calls this)
#   bench_gpu.sh help
#
#   RESULTS=tests/results       directory for the two files
#   SIZES=holotron-12b          sizes of the model; weights are created on the GPU, no file is read
#   WEIGHTS='auto int8 fp8 fp8+kv8'    formats of the weights; auto: bf16; +kv8: also 8-bit KV caches; +act8 at
#                               the end: also 8-bit activations in prompts (fp8, from sm_89 on)
#   PARTS=                      lines of seconds|weights|section|text instead of WEIGHTS: rows of a section whose names
#                               contain the text (empty: all), and the most seconds for them
#   REPEAT=3                    minimum number of runs of each figure
#   DEVICE=cuda                 cuda:1: the second GPU
#   LIMIT=                      total time in seconds; rows that were not reached are named
#   NOTES=                      a file of lines to include in both files
set -uo pipefail
usage() {
    cat <<'TEXT'
make bench-gpu measures a GPU with one session and with a hundred. It needs an NVIDIA GPU with 80 GB or
more, its driver, nvcc and cuBLAS (CUDA 12 or 13; images "cuda:*-devel" have both):

    tests/scripts/install.sh build              # packages
    make -j"$(nproc)" CARDS=90 holorun          # 90: H100, H200; 80: A100; 100: B200; 120: RTX 50; 89: RTX 40
    make bench-gpu                              # tests/results/DATE-CARD.json and .md
    make test-gpu                               # compares kernels with the reference, then compute-sanitizer
    make card                                   # the main parts of both in ten minutes, built for this GPU only

Targets, and their rows in the table:

    decode: 85 % of the bandwidth at B=1, 75 % at 100    "1 session after 12288", "100 sessions after 12288": of memory
    a screenshot of 13 tiles: 55 % of the rate, 240 ms   "screen, 13 tiles, ...: all of it": of peak, and its median
    4 agent steps/s with 100 sessions                    "100 sessions: 1920x1080 screen": steps/s
    one session's step: 0.7 s bf16, 0.4 s at 8 bits      "1 session: 1920x1080 screen, ... 35 forced": its median
    142 MiB per session and 24 KiB per token             "memory of a session", "memory per token"

On a smaller GPU: SIZES=tiny shows that everything works, WEIGHTS=int8 takes 14 GB. To run a single part:

    ./holorun bench --device cuda --random holotron-12b --section fleet [--weights int8] [--json]
    ./holorun bench --device cuda --random holotron-12b --section kernels
TEXT
}
if [ "${1:-help}" = help ]; then
    usage
    exit 0
fi
holorun=$1
results=${RESULTS:-tests/results} sizes=${SIZES:-holotron-12b} device=${DEVICE:-cuda}
index=0
[ "$device" = cuda ] || index=${device#cuda:}
ask() { nvidia-smi -i "$index" --query-gpu="$1" --format=csv,noheader 2>/dev/null || echo unknown; }
card=$(ask name) driver=$(ask driver_version) memory=$(ask memory.total) power=$(ask power.limit)
name=$(date -u +%Y-%m-%d)-$(printf '%s' "${card#NVIDIA }" | tr -c 'A-Za-z0-9' '-' | tr 'A-Z' 'a-z')
mkdir -p "$results"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
version=$("$holorun" version | head -n 1)

printf '%s, %s, driver %s, %s; %s\n' "$card" "$memory" "$driver" "$power" "$version"
cat "${NOTES:-/dev/null}" >"$work/notes"
touch "$work/rows"
began=$SECONDS failed=0
[ -n "${PARTS:-}" ] || PARTS=$(printf '86400|%s|fleet|\n' ${WEIGHTS:-auto int8 fp8 fp8+kv8})
while IFS='|' read -r most form section only; do
    kv=auto activations=auto
    case $form in *+act8) activations=fp8 ;; esac
    case $form in *+kv8*) kv=fp8 ;; esac
    command=(bench --device "$device" --random "$sizes" --section "$section" --weights "${form%%+*}" --kv "$kv"
        --activations "$activations" --repeat "${REPEAT:-3}" --json)
    words=${command[*]} part="$form, $section${only:+, $only}"
    [ -z "$only" ] || { command+=(--only "$only") && words+=" --only '$only'"; }
    left=$((${LIMIT:-86400} - (SECONDS - began)))
    if [ "$left" -lt 15 ]; then
        echo "$part: not begun, for want of time" | tee -a "$work/notes" >&2
        continue
    fi
    left=$((left < most ? left : most))
    echo "holorun $words" >>"$work/commands"
    # Adds the format of the weights to every row; a row is an object on one line.
    rc=0
    timeout "$left" "$holorun" "${command[@]}" 2>"$work/said" </dev/null | sed -u "s/^{/{\"weights\": \"$form\", /" |
        tee -a "$work/rows" >&2 || rc=$?
    # Rows that do not fit are reported on stderr.
    sed "s/^/$form: /" "$work/said" | tee -a "$work/notes" >&2
    case $rc in
    0) ;;
    124) echo "$part: stopped after $left s, for want of time" | tee -a "$work/notes" >&2 ;;
    *) echo "$part: exit code $rc" | tee -a "$work/notes" >&2 && failed=1 ;;
    esac
done <<<"$PARTS"

# Prints members of rows; their texts contain no quotes.
table() {
    awk '
        function member(key,   s) {
            if (!match($0, "\"" key "\": (\"[^\"]*\"|[^,}]*)")) return ""
            s = substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4)
            gsub(/"/, "", s)
            return s
        }
        function percent(s) { return s == "" ? "" : sprintf("%.0f %%", 100 * s) }
        BEGIN { print "| weights | what | median ms | least ms | rate | of GEMM (MFU) | of bandwidth (MBU) |"
                print "|---|---|---:|---:|---:|---:|---:|" }
        /"section"/ { rate = member("rate") != "" ? sprintf("%.4g %s", member("rate"), member("unit")) : ""
          if (member("section") == "peak")
              rate = member("gflop_s") != "" ? sprintf("%.1f TFLOP/s", member("gflop_s") / 1000) : sprintf("%.0f GB/s", member("gb_s"))
          if (member("value") != "") rate = sprintf("%.5g %s", member("value"), member("unit"))
          peak = member("section") == "peak"
          printf "| %s | %s | %s | %s | %s | %s | %s |\n", member("weights"), member("name"), member("median_ms"), member("min_ms"),
                 rate, peak ? "" : percent(member("of_peak")), peak ? "" : percent(member("of_memory")) }' "$work/rows"
}
{
    echo "# $card, $(date -u +%Y-%m-%d)"
    echo
    echo "$memory, power limit $power, driver $driver; $processor, $(nproc) threads; $version."
    echo "Sizes of $sizes, with random weights created on the GPU; auto: bf16. Limits are those measured in the same run."
    echo
    sed 's/^/    /' "$work/commands"
    echo
    sed 's/^/* /' "$work/notes"
    echo
    table
} >"$results/$name.md"
{
    printf '{"date": "%s", "card": "%s", "memory": "%s", "driver": "%s", "power": "%s", "processor": "%s", "version": "%s",\n "commands": [' \
        "$(date -u +%FT%TZ)" "$card" "$memory" "$driver" "$power" "$processor" "$version"
    sed -e 's/.*/"&"/' -e '$!s/$/, /' "$work/commands" | tr -d '\n'
    printf '],\n "notes": ['
    sed -e 's/["\\]/\\&/g' -e 's/[[:cntrl:]]/ /g' -e 's/.*/"&"/' -e '$!s/$/, /' "$work/notes" | tr -d '\n'
    printf '],\n "rows": [\n'
    sed '$!s/$/,/' "$work/rows"
    echo ']}'
} >"$results/$name.json"
cat "$results/$name.md"
echo "written: $results/$name.md and $results/$name.json"
exit $failed
