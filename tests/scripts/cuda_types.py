#!/usr/bin/env python3
"""Finds types of cuda/ with the same name in two files. The linker would silently merge templates instantiated with
them. A type used in one file belongs into an anonymous namespace, or needs a unique name.
"""
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
