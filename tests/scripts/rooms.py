#!/usr/bin/env python3
"""Checks the architecture by the include lines: no cycle between folders, and no private header used from another
folder.

A room is a folder with sources: actions, cuda, and each folder below src (src/qa has three). main.c is a room of its
own. A header is private if it is named private.h or *_impl.h. --list prints the rooms from the bottom up; otherwise
only errors are printed.
"""
import collections
import os
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SOURCE = re.compile(r"\.(c|h|cu|cuh)$")


def room_of(path):
    parts = path.split("/")[:-1]
    if parts[:2] == ["src", "qa"]:
        return "/".join(parts[1:])
    return parts[1] if parts[0] == "src" and len(parts) > 1 else parts[0] if parts[0] != "src" else "main"


def resolve(path, name):
    for place in (os.path.dirname(path), "src", "."):
        found = os.path.normpath(os.path.join(place, name))
        if os.path.exists(found):
            return found
    return None


def read_tree(files):
    """Returns the include lines of each pair of rooms, and the uses of private headers."""
    uses, private = collections.defaultdict(list), []
    for path in files:
        with open(path, encoding="utf-8") as f:
            names = INCLUDE.findall(f.read())
        for name in names:
            header = resolve(path, name)
            if header is None or room_of(header) == room_of(path):
                continue
            uses[room_of(path), room_of(header)].append(f"{path} includes {name}")
            if re.search(r"(^|/)private\.h$|_impl\.h$", header):
                private.append(f"{path}: {name} is private to {room_of(header)}")
    return uses, private


def layers(rooms, uses):
    """Returns the rooms from the bottom up, and those that are part of a cycle."""
    below = {r: {b for a, b in uses if a == r} for r in rooms}
    reach = {r: set(below[r]) for r in rooms}
    for _ in rooms:
        for r in rooms:
            reach[r] |= set().union(*(below[b] for b in reach[r]))
    tied = {r for r in rooms if r in reach[r]}
    return sorted(rooms, key=lambda r: (len(reach[r]), r)), tied


def main():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "src", "actions", "cuda"], text=True,
                            check=True, stdout=subprocess.PIPE).stdout.split()
    files = [f for f in listed if SOURCE.search(f) and os.path.exists(f)]
    rooms = sorted({room_of(f) for f in files})
    uses, private = read_tree(files)
    order, tied = layers(rooms, uses)
    if "--list" in sys.argv:
        for r in order:
            print(f"{r:12} <- {' '.join(sorted(b for a, b in uses if a == r))}")
    for line in private:
        print(line)
    for (a, b), lines in sorted(uses.items()):
        if a in tied and b in tied:
            print(f"part of a cycle: {a} -> {b}")
            for line in lines:
                print(f"    {line}")
    return 1 if tied or private else 0


if __name__ == "__main__":
    sys.exit(main())
