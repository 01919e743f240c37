#!/bin/sh
# convert.sh LAYOUT [--images PREFIX] FILE ...   prints a public grounding set in the format of `holorun eval`
#
#   screenspot       ScreenSpot and ScreenSpot-v2: JSON lists of img_filename, bbox [x, y, width, height], instruction,
#                    data_type, data_source; the platform is part of the file's name
#   screenspot-hf    the same as a table: file_name, bbox [x1, y1, x2, y2], as fractions or in pixels
#   screenspot-pro   one JSON list per application: bbox [x1, y1, x2, y2], img_size, application, platform, group, ui_type
#   osworld-g        JSON list: image_path, image_size, box_type (bbox x, y, width, height; polygon; refusal), box_coordinates
#   webclick         table: image, instruction, bbox, bucket
#   groundui         table: image, resolution, instruction, bbox, platform
#
# Tables are parquet files, which need python3 with pyarrow and Pillow (parquet.py, beside this script), or the JSON
# lines that parquet.py writes. PREFIX is prepended to the names of images: their folder, relative to the output file.
#
#   convert.sh screenspot --images screenspot_imgs screenspot_*.json >screenspot.jsonl
#   convert.sh webclick --images webclick-images test-*.parquet >webclick.jsonl      (writes images to that folder)
set -eu

usage() {
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2
    exit 2
}

[ $# -ge 2 ] || usage
layout=$1
shift
images=
if [ "$1" = --images ]; then
    [ $# -ge 3 ] || usage
    images=${2%/}/
    shift 2
fi
command -v jq >/dev/null || { echo "convert.sh: jq is missing; on Debian: apt-get install jq" >&2; exit 3; }

# Definitions for all layouts. `at` is the index of the item in its file, for names and messages.
common='
def bad($what): error("item \(.at + 1) of \($file): \($what)");
def text($key): if (.[$key] | type) == "string" and .[$key] != "" then .[$key] else bad("\($key) is no text") end;
# The sum turns 20.0 into 20, which jq 1.7 does not.
def numbers($key; $n):
    if (.[$key] | type) == "array" and (.[$key] | length) >= $n and all(.[$key][]; type == "number")
    then .[$key] | map(. + 0) else bad("\($key) is not \($n) numbers") end;
def corners: [.[0], .[1], .[0] + .[2], .[1] + .[3]];
def tag($key; $name): if (.[$key] | type) == "string" and .[$key] != "" then {($name): .[$key]} else {} end;
def name: "\($file)-\(.at)";
# Boxes up to one are fractions of the image.
def fractions: if all(.box[]; . >= 0 and . <= 1) then . + {w: 1, h: 1} else . end;
def sized($key): numbers($key; 2) as $s | {w: $s[0], h: $s[1]};
def items: map(if type == "array" then .[] else . end) | to_entries[] | .value + {at: .key};
'
case $layout in
screenspot) map='
    ($file | capture("(?<p>desktop|mobile|web)") // {p: ""} | .p) as $platform
    | items | {id: name, image: ($images + text("img_filename")), instruction: text("instruction"),
        box: (numbers("bbox"; 4) | corners),
        tags: ((if $platform != "" then {platform: $platform} else {} end)
               + tag("data_type"; "type") + tag("data_source"; "source"))}' ;;
screenspot-hf) map='
    items | {id: name, image: ($images + text("file_name")), instruction: text("instruction"), box: numbers("bbox"; 4)[:4],
        tags: (tag("data_type"; "type") + tag("data_source"; "source"))} | fractions' ;;
screenspot-pro) map='
    items | sized("img_size") + {id: (.id // name), image: ($images + text("img_filename")),
        instruction: text("instruction"), box: numbers("bbox"; 4)[:4],
        tags: (tag("application"; "application") + tag("platform"; "platform") + tag("group"; "group")
               + tag("ui_type"; "type"))}' ;;
osworld-g) map='
    items | sized("image_size") + {id: (.id // name), image: ($images + text("image_path")),
        instruction: text("instruction"), tags: tag("box_type"; "target")}
        + (if .box_type == "bbox" then {box: (numbers("box_coordinates"; 4) | corners)}
           elif .box_type == "polygon" then {poly: numbers("box_coordinates"; 6)}
           elif .box_type == "refusal" then {box: null}
           else bad("box_type is none of bbox, polygon, refusal") end)' ;;
webclick) map='
    items | {id: name, image: ($images + text("image")), instruction: text("instruction"), box: numbers("bbox"; 4)[:4],
        tags: tag("bucket"; "bucket")} | fractions' ;;
groundui) map='
    items | sized("resolution") + {id: name, image: ($images + text("image")), instruction: text("instruction"),
        box: numbers("bbox"; 4)[:4], tags: tag("platform"; "platform")}' ;;
*) usage ;;
esac

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for file; do
    [ -r "$file" ] || { echo "convert.sh: cannot read '$file'" >&2; exit 2; }
    name=$(basename "$file")
    name=${name%.*}
    from=$file
    case $file in *.parquet)
        python3 "$(dirname "$0")/parquet.py" "$file" "${images:-.}" >"$lines"
        from=$lines
        ;;
    esac
    jq -c -s --arg file "$name" --arg images "$images" "$common $map" "$from"
done
