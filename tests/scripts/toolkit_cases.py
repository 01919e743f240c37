#!/usr/bin/env python3
"""Generates dialogs of GTK 3, Qt 5 and Tk as suites for `holorun qa` with any model.

    tests/scripts/toolkit_cases.py >tests/suites/toolkits.yaml             60 dialogs of each toolkit
    tests/scripts/toolkit_cases.py --windows >tests/suites/windows.yaml    50 desktops with an OK in the active dialog,
                                                                          50 without
    tests/scripts/toolkit_cases.py [--windows] --right DIR [--only ID]     a script per test that solves it

dialog.py opens the windows and prints the pressed button; that line decides the test. All names are from the held-out
part of the lexicon and the seeds are for evaluation, so neither words nor layout were in training. Each call produces
the same suites. Button positions depend on the machine's fonts: `--right` opens each dialog on an X server and asks
the toolkit for them (needs Xvfb and openbox). The result passes all tests:

    holorun qa tests/suites/toolkits.yaml --dialect pyautogui --fake DIR
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from urllib.parse import urlencode, quote

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "assets/pocket"))
from pocket.sources import kiosk_states, words  # noqa: E402

FIRST_SEED = 6_000_000
DIALOG = ROOT / "tests/suites/toolkits/dialog.py"
NUMBERS = {"buttons": 20, "ticks": 15, "options": 10, "fields": 15}  # of each toolkit
TOOLKITS = ("gtk", "qt", "tk")
OTHER = ["Cancel", "Close", "Retry", "Apply", "Help", "Save", "Yes", "No", "Later"]
HEADS = {
    "toolkits": ("60 dialogs each of GTK 3, Qt 5 and Tk; words that were never trained on.", "640x480", 12),
    "windows": ("Desktops with several windows: `press OK` means the active dialog, and says so when it has none.",
                "1024x768", 6),
}


def escaped(text):
    return "".join("\\" + c if c in "\\.[]{}()*+?^$|" else c for c in text)


def query(**parts):
    return urlencode({k: v for k, v in parts.items() if v}, quote_via=quote)


class Case:
    """id, toolkit, tags, task, dialogs as queries, the expected line (None: nothing may be pressed), steps.
    """

    def __init__(self, name, toolkit, tag, task, dialogs, line, steps):
        self.name, self.toolkit, self.tag, self.task, self.dialogs = name, toolkit, tag, task, dialogs
        self.line, self.steps = line, steps  # [(element, text or None)]


def said(s):
    """Returns the line that dialog.py prints in a state."""
    on = ",".join(l for k, l in enumerate(s["labels"]) if k in s["on"])
    more = {"buttons": [], "ticks": [f"ticked={on}"], "options": [f"chosen={on}"],
            "fields": [f"{l}={v}" for l, v in zip(s["labels"], s["values"])]}[s["kind"]]
    return f"{s['title']}: " + ";".join([f"pressed={s['pressed']}"] + more)


def one(rng, lex, toolkit, kind, k):
    s = kiosk_states.blank_dialog(rng, lex, (FIRST_SEED + k,) * 2, kind)
    s["title"] = s["title"] or lex.label(12)
    task = kiosk_states.dialog_task(rng, lex, s, s["buttons"][0] if s["buttons"] else "")
    dialog = query(title=s["title"], text=s["text"], kind=kind, labels="|".join(s["labels"]),
                   buttons="|".join(s["buttons"]), at=f"{rng.randint(5, 25)},{rng.randint(25, 60)}")
    steps = [(step.element, step.text if step.verb == "write" else None) for step in task.steps]
    for step in task.steps:
        kiosk_states.do(s, step)
    return Case(f"{toolkit}-{kind}-{k}", toolkit, f"{toolkit}-{kind}", task.sentence, [dialog], said(s), steps)


def toolkits():
    out = []
    for toolkit in TOOLKITS:
        rng = random.Random(f"toolkits/{toolkit}")
        lex = words.Lexicon(rng, evaluation=True)
        kinds = [kind for kind, n in NUMBERS.items() for _ in range(n)]
        out += [one(rng, lex, toolkit, kind, k + 1) for k, kind in enumerate(kinds)]
    return out


def some_window(rng, lex, buttons, at):
    title = lex.label(14)
    return title, query(title=title, text=lex.sentence(3, 7), labels="|".join(buttons), at=f"{at[0]},{at[1]}")


def desktop(rng, lex, k, there):
    """Returns one to three windows, some with an OK, behind the active dialog, which the task refers to."""
    back, spots = [], [(20, 40), (560, 60), (40, 470), (600, 500)]
    rng.shuffle(spots)
    for at in spots[: rng.randint(1, 3)]:
        buttons = rng.sample(OTHER, rng.randint(1, 2)) + (["OK"] if rng.random() < 0.7 else [])
        back.append(some_window(rng, lex, buttons, at)[1])
    buttons = rng.sample(OTHER, rng.randint(1, 3)) + (["OK"] if there else [])
    rng.shuffle(buttons)
    title, dialog = some_window(rng, lex, buttons, (rng.randint(250, 420), rng.randint(230, 340)))
    task = rng.choice(("press OK", "Press OK", "click OK", "Press the OK button"))
    tag = "there" if there else "not-there"
    line = f"{title}: pressed=OK" if there else None
    return Case(f"ok-{tag}-{k}", TOOLKITS[k % 3], tag, task, back + [dialog], line, [("OK", None)] if there else [])


def windows():
    rng = random.Random("windows")
    lex = words.Lexicon(rng, evaluation=True)
    return [desktop(rng, lex, k + 1, there) for there in (True, False) for k in range(50)]


def quoted(text):
    assert not set("{}") & set(text), text
    return "'" + text.replace("'", "''") + "'"


def suite(name, cases):
    about, size, steps = HEADS[name]
    print(f"# {about}  Made by tests/scripts/toolkit_cases.py.")
    print(f"suite:\n  name: {name}\n  display: xvfb:{size}\n  start_timeout_s: 60\n  steps: {steps}\n  timeout_s: 60")
    if name == "windows":  # one suite in which nothing but pixels is known
        print("  elements: no")
    print("  env: { GTK_THEME: Adwaita }")
    print('  start: "\\"{dir}/toolkits/dialog.py\\" {toolkit} {dialogs} >\\"$HOME/answer\\""')
    print("  window: '^{title}$'\ntests:")
    for c in cases:
        title = c.dialogs[-1].split("&")[0].split("=")[1]
        dialogs = " ".join(f'"{d}"' for d in c.dialogs)
        print(f"- id: {c.name}\n  tags: [{c.tag}]\n  task: {quoted(c.task)}")
        print(f"  vars: {{ toolkit: {c.toolkit}, title: {quoted(escaped(unquoted(title)))}, dialogs: {quoted(dialogs)} }}")
        if c.line is None:
            print("  expect: infeasible\n  checks:\n    - { kind: shell, run: '! test -s \"$HOME/answer\"', "
                  "label: nothing was pressed, when: always }")
        else:
            print(f"  checks:\n    - {{ kind: file, path: answer, match: {quoted('^' + escaped(c.line) + '$')}, when: always }}")


def unquoted(text):
    from urllib.parse import unquote

    return unquote(text)


# ---- scripts that solve the tests ----------------------------------------------------------------


class Server:
    def __init__(self, size):
        r, w = os.pipe()
        self.x = subprocess.Popen(["Xvfb", "-displayfd", str(w), "-screen", "0", f"{size}x24", "-nolisten", "tcp"],
                                  pass_fds=[w], stderr=subprocess.DEVNULL)
        os.close(w)
        with os.fdopen(r) as f:
            self.env = {**os.environ, "DISPLAY": ":" + f.readline().strip(), "NO_AT_BRIDGE": "1", "GTK_THEME": "Adwaita"}
        self.wm = self.managed()

    def managed(self):
        """Keeps openbox running; restarts it if it ended by itself."""
        for _ in range(3):
            wm = subprocess.Popen(["openbox", "--sm-disable"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(300):
                if wm.poll() is not None:
                    break
                asked = ["xprop", "-root", "_NET_SUPPORTING_WM_CHECK"]
                if b"window id" in subprocess.run(asked, env=self.env, stdout=subprocess.PIPE, check=False).stdout:
                    return wm
                time.sleep(0.1)
            wm.terminate()
            wm.wait()
        self.x.terminate()
        sys.exit(f"toolkit_cases.py: openbox does not come up on {self.env['DISPLAY']}")

    def boxes(self, c):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "boxes")
            p = subprocess.Popen([str(DIALOG), c.toolkit, *c.dialogs],
                                 env={**self.env, "HOLORUN_BOXES": path}, stdout=subprocess.DEVNULL)
            try:
                for _ in range(600):
                    if os.path.exists(path):
                        with open(path) as f:
                            return json.load(f)
                    if p.poll() is not None:
                        sys.exit(f"toolkit_cases.py: {c.name}: dialog.py ended by itself")
                    time.sleep(0.05)
                sys.exit(f"toolkit_cases.py: {c.name}: no dialog within 30 s")
            finally:
                p.terminate()
                p.wait()

    def close(self):
        for p in (self.wm, self.x):
            p.terminate()
            p.wait()


def right(name, cases, folder):
    server = Server(HEADS[name][1])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for c in cases:
            lines = ["FAIL()"]
            if c.line is not None:
                boxes, lines = server.boxes(c), []
                for element, text in c.steps:
                    lines.append("pyautogui.click(%d, %d)" % tuple(boxes[element]))
                    if text is not None:
                        lines.append(f"pyautogui.write({text!r})")
                lines.append("DONE()")
            (folder / f"{c.name}.txt").write_text("\n".join(lines) + "\n")
    finally:
        server.close()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--windows", action="store_true", help="several windows instead of one dialog")
    p.add_argument("--right", type=pathlib.Path, metavar="DIR", help="write scripts that do it right")
    p.add_argument("--only", action="append", help="with --right: only this test")
    a = p.parse_args()
    name, cases = ("windows", windows()) if a.windows else ("toolkits", toolkits())
    if a.right:
        right(name, [c for c in cases if not a.only or c.name in a.only], a.right)
    else:
        suite(name, cases)


if __name__ == "__main__":
    main()
