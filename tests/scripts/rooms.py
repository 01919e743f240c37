#!/usr/bin/env python3
"""Checks the architecture by the include lines: no cycle between folders, no private header used from another
folder, and headers of X11 only in the X11 implementation of the display.

A room is a folder with sources: actions, cuda, and each folder below src (src/qa has three). main.c is a room of its
own. A header is private if it is named private.h or *_impl.h. Headers of X11 (Xlib, XCB, libxdo; not the tables of
keysyms) may be included, directly or through our headers, in src/screen/x11 and in the files of X11_ALLOWED. --list
prints the rooms from the bottom up; otherwise only errors are printed.
"""
import collections
import os
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SOURCE = re.compile(r"\.(c|h|cu|cuh)$")
X11_HEADER = re.compile(r"^\s*#\s*include\s+<(X11/(?!keysym|XF86keysym)|xcb/|xdo\.h)", re.M)
X11_ROOM = "src/screen/x11/"
X11_ALLOWED = {  # prefix of a path: why it is not behind src/screen/screen_ops.h
    "src/desk/view": "VNC viewers show and control a private desktop, which is an X server of our own",
    "src/record/listen.c": "records a user's keys and clicks with XRecord",
    "src/step/focus.c": "moves the focus between the step window and others, with a connection of its own",
    "src/step/window.c": "asks whether the window manager has framed SDL's X window",
    "src/atspi/xwindows.c": "runs in a child process after fork(), where Xlib may be locked",
    "src/qa/run/check_clipboard.c": "reads the clipboard of a private desktop without a struct screen",
    "src/cmd/version.c": "prints the version of libxdo",
    "actions/keys.c": "names of keysyms, a table of Xlib",
}


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


def check_x11(files):
    """Returns a line for each file that may not include headers of X11, and for each exception without a use. An
    include of a header that may include them counts like a direct one."""
    may, users, includes = (X11_ROOM, *X11_ALLOWED), set(), {}
    for path in files:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if X11_HEADER.search(text):
            users.add(path)
        includes[path] = {resolve(path, name) for name in INCLUDE.findall(text)}
    found = users
    while found:
        carriers = {p for p in users if p.startswith(may)}
        found = {p for p, headers in includes.items() if p not in users and headers & carriers}
        users |= found
    lines = [f"{p}: includes a header of X11; use src/screen/screen.h, or name the file in X11_ALLOWED"
             for p in sorted(users) if not p.startswith(may)]
    return lines + [f"{a}: is in X11_ALLOWED, but includes no header of X11"
                    for a in X11_ALLOWED if not any(p.startswith(a) for p in users)]


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
    foreign = check_x11(files)
    for line in private + foreign:
        print(line)
    for (a, b), lines in sorted(uses.items()):
        if a in tied and b in tied:
            print(f"part of a cycle: {a} -> {b}")
            for line in lines:
                print(f"    {line}")
    return 1 if tied or private or foreign else 0


if __name__ == "__main__":
    sys.exit(main())
