#!/usr/bin/env python3
"""Fails if code outside src/pocket names parts of the embedded model.

That model has screen heads, word lists and corrections. The rest of the program may only open its assist
(pocket/assist.h, pocket/reading.h) and list its reply format, whose parser and grammar are actions/*pocket*. Prints
each line that names more; nothing otherwise.
"""
import re
import subprocess
import sys

PARTS = re.compile(
    r"SYNTAX_POCKET|llm_(?:is_)?locate|patch_map|patch_reading|picture_text|element_kind|ELEMENT_(?:KINDS|BUTTON|CHECK|FIELD)|LOCATE_[A-Z]"
    r'|<at>|<missing>|session_read_patches|vision_heads|stand_ins_|task_(?:pieces|unmentioned|has_conditions)'
    r'|pocket_(?!assist_open|read_screen)[a-z]|"pocket/(?!assist\.h|reading\.h)'
)
OWN = re.compile(r"^src/pocket/|^actions/[a-z]*_?pocket[a-z_]*\.[ch]$")
# Names of Unicode categories, the file of the dialect, the row of the table of formats.
ALLOWED = {
    "src/text/tokenizer_unicode.c": re.compile(r"stand_ins"),
    "actions/dialect_builtin.c": re.compile(r"pocket-wide\.json"),
    "actions/syntax.c": re.compile(r"syntax_pocket|pocket_impl"),
}


def main():
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "src", "actions", "cuda"], text=True,
                           check=True, stdout=subprocess.PIPE).stdout.split()
    bad = 0
    for path in files:
        if OWN.search(path) or not re.search(r"\.(c|h|cu|cuh)$", path):
            continue
        try:
            lines = open(path, encoding="utf-8").read().splitlines()
        except FileNotFoundError:
            continue
        for number, line in enumerate(lines, 1):
            if path in ALLOWED and ALLOWED[path].search(line):
                continue
            if PARTS.search(line):
                print(f"{path}:{number}: {line.strip()}")
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
