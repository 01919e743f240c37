#!/usr/bin/env python3
"""Types of cuda/ that have one name in two files: templates made of them would be taken for one another when the program is
linked, without a word.  A type of one file belongs into an anonymous namespace, or gets a name of its own."""
import collections
import pathlib
import re
import sys

TYPE = re.compile(r"^(?:template <[^;{]*?>\s*)?struct (\w+)[^;{(]*\{", re.M)
HIDDEN = re.compile(r"^namespace\s*\{.*?^\} // namespace", re.M | re.S)

where = collections.defaultdict(set)
for path in sorted(pathlib.Path("cuda").glob("*.cu*")):
    for name in TYPE.findall(HIDDEN.sub("", path.read_text())):
        where[name].add(path.name)
bad = {name: files for name, files in where.items() if len(files) > 1}
for name, files in bad.items():
    print(f"struct {name}: in {' and '.join(sorted(files))}")
sys.exit(bool(bad))
