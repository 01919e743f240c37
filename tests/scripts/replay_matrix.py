#!/usr/bin/python3
"""Records six programs as a person would use them (xdotool) and replays each recording over eight changes.

    replay_matrix.py [--only yad,mousepad] [--changes moved,dark] [--keep DIR] [--jobs 2]

The result of a replay is the text that the program wrote (file, output, clipboard), and the exit code of holorun:

    right     the recorded text, exit code 0           wrong     another text, exit code 0
    failed    another text, the run said so            rejected  the recorded text, but the run failed

HOLORUN: the program, default ./holorun. Needs Xvfb, openbox, xdotool, wmctrl, xclip, dbus-daemon, at-spi2-core, yad, mousepad, galculator, l3afpad, featherpad, python3-pyqt6,
qt5ct, arc-theme and the locale de_DE.UTF-8. Runs from the root of the source tree.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

CHANGES = ("moved", "widened", "maximised", "theme", "fonts", "dark", "german", "slow")
PLAIN = ("same",)
ENV = {
    "theme": {"GTK_THEME": "Arc", "QT_STYLE_OVERRIDE": "Windows", "REPLAY_STYLE": "Windows"},
    "fonts": {"GDK_DPI_SCALE": "1.4", "QT_FONT_DPI": "134"},
    "dark": {"GTK_THEME": "Adwaita:dark", "QT_QPA_PLATFORMTHEME": "qt5ct", "REPLAY_DARK": "1"},
    "german": {"LANG": "de_DE.UTF-8", "LC_ALL": "", "LANGUAGE": "de"},
}
HOLORUN = os.path.abspath(os.environ.get("HOLORUN", "holorun"))
NUMBERS = itertools.count(1000 + os.getpid() % 3000 * 10)
QT5CT = """[Appearance]
color_scheme_path=/usr/share/qt5ct/colors/darker.conf
custom_palette=true
style=Fusion
"""


class Place:
    """A private display with window manager, buses and an empty home."""

    def __init__(self, change):
        self.change = change
        self.home = tempfile.mkdtemp(prefix="replay.")
        self.env = {k: v for k, v in os.environ.items() if k in ("PATH", "USER", "LOGNAME")}
        self.env.update(HOME=self.home, XDG_RUNTIME_DIR=self.home, LC_ALL="C.UTF-8", QT_LINUX_ACCESSIBILITY_ALWAYS_ON="1",
                        GNOME_ACCESSIBILITY="1", GSETTINGS_BACKEND="memory", GTK_THEME="Adwaita", QT_STYLE_OVERRIDE="Fusion")
        self.running, self.slow = [], None
        number = next(NUMBERS)
        self.env["DISPLAY"] = f":{number}"
        self.start(["Xvfb", f":{number}", "-screen", "0", "1280x900x24", "-nolisten", "tcp", "-ac"])
        until(20, lambda: os.path.exists(f"/tmp/.X11-unix/X{number}"))
        bus = self.start(["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address"], stdout=subprocess.PIPE)
        self.env["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().decode().strip()
        for name in ("IsEnabled", "ScreenReaderEnabled"):
            self.run("gdbus", "call", "--session", "-d", "org.a11y.Bus", "-o", "/org/a11y/bus", "-m",
                     "org.freedesktop.DBus.Properties.Set", "org.a11y.Status", name, "<true>")
        self.start(["openbox", "--sm-disable"])
        os.makedirs(self.home + "/.config/qt5ct")
        with open(self.home + "/.config/qt5ct/qt5ct.conf", "w") as f:
            f.write(QT5CT)
        time.sleep(1)

    def start(self, argv, **more):
        more.setdefault("stdout", subprocess.DEVNULL)
        p = subprocess.Popen(argv, env=self.env, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True,
                             cwd=self.home, **more)
        self.running.append(p)
        return p

    def run(self, *argv, **more):
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, **more)

    def program(self, case):
        for name, text in case.files.items():
            with open(f"{self.home}/{name}", "w") as f:
                f.write(text)
        self.run("gdbus", "call", "--session", "-d", "org.a11y.Bus", "-o", "/org/a11y/bus", "-m", "org.a11y.Bus.GetAddress")
        keep = dict(self.env)
        self.env.update(ENV.get(self.change, {}))
        if not self.env["LC_ALL"]:
            del self.env["LC_ALL"]
        with open(self.home + "/out", "w") as out:
            p = self.start(case.command, stdout=out)
        self.env = keep
        until(30, lambda: self.window(case.title(self.change)))
        time.sleep(2)
        if self.change == "slow":
            self.slow = threading.Event()
            threading.Thread(target=brake, args=(p.pid, self.slow), daemon=True).start()
        w = self.window(case.title(self.change))
        if self.change == "moved":
            self.run("xdotool", "windowmove", w, "150", "220")
        if self.change == "widened":
            self.run("xdotool", "windowsize", w, "900", "640")
        if self.change == "maximised":
            self.run("wmctrl", "-i", "-r", w, "-b", "add,maximized_vert,maximized_horz")
        time.sleep(1)

    def window(self, title):
        found = self.run("xdotool", "search", "--onlyvisible", "--name", title).stdout.split()
        return found[-1] if found else None

    def close(self):
        if self.slow:
            self.slow.set()
            time.sleep(0.3)
        for p in reversed(self.running):
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def brake(pid, done):
    """Lets a program run for a tenth of the time."""
    try:
        while not done.wait(0.018):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.16)
            os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


def until(seconds, what):
    end = time.time() + seconds
    while time.time() < end:
        got = what()
        if got:
            return got
        time.sleep(0.25)
    return None


class Person:
    """Looks for elements and uses mouse and keyboard."""

    def __init__(self, place):
        self.place = place

    def elements(self):
        text = self.place.run(HOLORUN, "elements", "--json").stdout
        return json.loads(text)["elements"] if text else []

    def find(self, role, name, nth=0):
        def look():
            fit = [e for e in self.elements() if re.fullmatch(role, e["role"]) and e.get("box") and e["box"][2] > 0
                   and (re.fullmatch(name, e["name"].strip()) if not name or not e.get("label") else re.fullmatch(name, e["label"]))]
            return fit[nth] if len(fit) > max(nth, 0) else None

        e = until(10, look)
        if not e:
            raise LookupError(f"{role} {name}: " + "; ".join(f"{e['role']} {e['name']!r} {e.get('label', '')!r}" for e in self.elements()))
        return e["box"]

    def point(self, x, y):
        was = [int(n) for n in re.findall(r":(\d+)", self.place.run("xdotool", "getmouselocation").stdout)[:2]]
        for k in (0.4, 0.8, 1):
            self.place.run("xdotool", "mousemove", str(int(was[0] + (x - was[0]) * k)), str(int(was[1] + (y - was[1]) * k)))
            time.sleep(0.05)
        time.sleep(0.6)

    def press(self, role, name, nth=0, at=(0.5, 0.5), times=1):
        x, y, w, h = self.find(role, name, nth)
        self.point(x + int(w * at[0]), y + int(h * at[1]))
        self.place.run("xdotool", "click", "--repeat", str(times), "--delay", "120", "1")
        time.sleep(0.9)

    def type(self, text):
        self.place.run("xdotool", "type", "--delay", "70", text)
        time.sleep(0.6)

    def key(self, *keys):
        self.place.run("xdotool", "key", "--delay", "80", *keys)
        time.sleep(0.6)


class Case:
    def __init__(self, name, command, title, german, act, want, files=None, result="out"):
        self.name, self.command, self.titles, self.act, self.want = name, command, (title, german), act, want
        self.files, self.result = files or {}, result

    def title(self, change):
        return self.titles[change == "german"]

    def got(self, place):
        if self.result == "clipboard":
            return place.run("xclip", "-o", "-selection", "clipboard").stdout.strip() if self.clipboard(place) else ""
        try:
            with open(f"{place.home}/{self.result}") as f:
                return f.read().strip()
        except OSError:
            return ""

    @staticmethod
    def clipboard(place):
        return place.run("xclip", "-o", "-selection", "clipboard", "-t", "TARGETS").returncode == 0


MENU, BAR, ITEM, BUTTON, TEXT = "menu", "menu( item)?", "(check |radio )?menu item", "push button|toggle button", "text|entry"


def yad(p):
    p.press(TEXT, "Name:?")
    p.type("Ana Lima")
    p.press("combo box", "Porto|City:?")
    p.press(ITEM + "|list item", "Rome")
    p.press("check box", "Gift")
    p.press(TEXT, "Note:?")
    p.type("two bags")
    p.press("combo box", "Small|Size:?")
    p.press(ITEM + "|list item", "Large")
    p.press(BUTTON, "OK")


def mousepad(p):
    p.press(TEXT, ".*", at=(0.3, 0.3))
    p.type("buy milk")
    p.press(MENU, "Edit")
    p.press(ITEM, "Select All")
    p.press(MENU, "Edit")
    p.press("menu", "Convert")
    p.press(ITEM, "(To )?Uppercase|To UPPER.*")
    p.press(MENU, "File")
    p.press(ITEM, r"Save As\.*…?")
    p.press(TEXT, "Name:?")
    p.key("ctrl+a")
    p.type("list.txt")
    p.press(BUTTON, "Save")


def galculator(p):
    for key in ("1", "2", r"\*|×", "3", "4", "="):
        p.press(BUTTON, key)
    p.press(MENU, "Edit")
    p.press(ITEM, "Copy Display Value")


def featherpad(p):
    p.press(TEXT, ".*", at=(0.3, 0.3))
    p.type("one two one")
    p.press(BAR, "Edit")
    p.press(ITEM, "Select All")
    p.press(BAR, "Edit")
    p.press(ITEM, "To Upper Case")
    p.press(BAR, "File")
    p.press(ITEM, r"Save As\.*…?")
    p.press(TEXT, "File name:?")
    p.key("ctrl+a")
    p.type("list.txt")
    p.press(BUTTON, "&?Save", -1)


def l3afpad(p):
    p.press(MENU, "Search")
    p.press(ITEM, r"Replace\.*")
    p.press(TEXT, "Find what:?")
    p.type("red")
    p.press(TEXT, "Replace with:?")
    p.type("blue")
    p.press("check box", "Replace all at once")
    p.press(BUTTON, "Find and Replace")
    p.press(BUTTON, "OK|Close|Cancel")
    p.press(MENU, "File")
    p.press(ITEM, "Save")


def rooms(p):
    p.press("table cell", "", 1)
    p.press("page tab", "Order")
    p.press("combo box", "Lima|City:?")
    p.press("list item|" + ITEM, "Rome")
    p.press(TEXT, "Nights:?")
    p.type("12")
    p.press("check box", "Breakfast")
    p.press(BUTTON, "Save")
    p.press(BUTTON, "&?Yes")


APP = os.path.abspath("tests/scripts/replay_app.py")
CASES = [
    Case("yad", ["yad", "--form", "--title=Order", "--field=Name", "--field=City:CB", "--field=Gift:CHK", "--field=Note",
                 "--field=Size:CB", "", "Porto!Rome!Lima", "FALSE", "", "Small!Medium!Large"], "^Order", "^Order", yad,
         "Ana Lima|Rome|TRUE|two bags|Large|"),
    Case("mousepad", ["mousepad", "--disable-server"], "Mousepad", "Mousepad", mousepad, "BUY MILK", result="list.txt"),
    Case("galculator", ["galculator"], "galculator", "galculator", galculator, "408", result="clipboard"),
    Case("featherpad", ["featherpad"], "Untitled", "Untitled|Unbenannt|Ohne", featherpad, "ONE TWO ONE", result="list.txt"),
    Case("l3afpad", ["l3afpad", "colours.txt"], "colours.txt", "colours.txt", l3afpad, "blue green blue",
         files={"colours.txt": "red green red\n"}, result="colours.txt"),
    Case("rooms", [APP], "^Rooms", "^Zimmer", rooms, "Ana,Cy Rome 12 True"),
]


def record(case, folder):
    place, path = Place("same"), f"{folder}/{case.name}.jsonl"
    try:
        place.program(case)
        with open(f"{folder}/{case.name}.record", "w") as log:
            r = subprocess.Popen([HOLORUN, "record", "-o", path], env=place.env, stdout=log, stderr=log)
        until(10, lambda: "recording" in open(f"{folder}/{case.name}.record").read())
        time.sleep(1)
        try:
            case.act(Person(place))
            if not until(10, lambda: case.got(place) == case.want):
                raise LookupError(f"the person got {case.got(place)!r}")
            time.sleep(1)
        except LookupError:
            r.kill()
            r.wait()
            os.unlink(path + ".part")
            raise
        r.send_signal(signal.SIGINT)
        r.wait(20)
        return path
    finally:
        place.close()


def replay(case, change, path, folder):
    place = Place(change)
    try:
        place.program(case)
        run = place.run(HOLORUN, "run", "Do it again", "--fake", path, "--runs", f"{folder}/{case.name}-{change}",
                        "--confirm", "yes-to-all", timeout=400)
        until(6, lambda: case.got(place) == case.want)
        got = case.got(place)
        verdict = {(True, 0): "right", (False, 0): "wrong"}.get((got == case.want, run.returncode),
                                                               "rejected" if got == case.want else "failed")
        with open(f"{folder}/{case.name}-{change}.txt", "w") as f:
            f.write(f"{verdict}: {got!r}\n{run.stdout}\n{run.stderr}")
        return verdict, (run.stdout.strip().splitlines() or run.stderr.strip().splitlines() or ["?"])[-1]
    except subprocess.TimeoutExpired:
        return "failed", "time limit of this script"
    finally:
        place.close()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--only", default="")
    a.add_argument("--changes", default=",".join(CHANGES))
    a.add_argument("--keep", help="folder for recordings and records; recordings in it are used again")
    a.add_argument("--jobs", type=int, default=2)
    o = a.parse_args()
    folder, table = os.path.abspath(o.keep or tempfile.mkdtemp(prefix="replays.")), {}
    os.makedirs(folder, exist_ok=True)
    cases = [c for c in CASES if not o.only or c.name in o.only.split(",")]
    changes = [c for c in o.changes.split(",") if c in CHANGES + PLAIN]
    for case in cases:
        path = f"{folder}/{case.name}.jsonl"
        if not os.path.exists(path):
            try:
                record(case, folder)
            except (LookupError, subprocess.TimeoutExpired) as e:
                print(f"{case.name}: not recorded: {e}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        jobs = {(c.name, v): pool.submit(replay, c, v, f"{folder}/{c.name}.jsonl", folder)
                for c in cases for v in changes if os.path.exists(f"{folder}/{c.name}.jsonl")}
        for key, job in jobs.items():
            table[key] = job.result()
            print(*key, *table[key], flush=True)
    print("| program | " + " | ".join(changes) + " |\n|---|" + "---|" * len(changes))
    for c in cases:
        print(f"| {c.name} | " + " | ".join(table.get((c.name, v), ("-",))[0] for v in changes) + " |")
    verdicts = [v for v, _ in table.values()]
    print(f"{verdicts.count('right')} of {len(cases) * len(changes)} right, {verdicts.count('wrong')} wrong and passed")
    sys.exit(verdicts.count("right") != len(cases) * len(changes))


if __name__ == "__main__":
    main()
