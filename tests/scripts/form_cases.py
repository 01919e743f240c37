#!/usr/bin/env python3
"""Generates a hundred web forms, in themes unseen in training, as a suite for `holorun qa` with any model.

    tests/scripts/form_cases.py >tests/suites/forms.yaml
    tests/scripts/form_cases.py --right DIR                 a script per test that solves it

A form has two to four parts (fields, checkboxes, options), a submit button and sometimes another button; the task
names some of them. The title of tests/suites/forms/form.html reports the pressed button and all values, which decides
the test. Words are from the held-out part of the lexicon, seeds are for evaluation; each call produces the same
suite. `--right` asks a headless Chromium for the positions; the result passes all tests:

    holorun qa tests/suites/forms.yaml --dialect pyautogui --fake DIR
"""
import argparse
import base64
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from urllib.parse import quote, urlencode

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "assets/pocket"))
from pocket.sources import tasks, words  # noqa: E402

THEMES = ("slip", "board", "panel", "berry", "sheet")
FORMS, SCREEN = 100, (640, 480)


def different(lex, taken, length):
    while True:
        label = lex.label(length)
        if label.lower() not in taken and not set(",|;=:") & set(label):
            taken.add(label.lower())
            return label


class Form:
    def __init__(self, k):
        rng = random.Random(f"forms/{k}")
        lex, taken = words.Lexicon(rng, evaluation=True), set()
        self.name, self.theme = f"{THEMES[k % len(THEMES)]}-{k + 1}", THEMES[k % len(THEMES)]
        new = lambda n=12: different(lex, taken, n)
        kinds = rng.sample(("field", "field", "field", "ticks", "options", "area"), rng.randint(2, 3))
        self.parts = []
        for kind in dict.fromkeys(k for k in kinds if k != "field"):  # one group of each kind, then the fields
            self.parts.append((kind, [new() for _ in range(1 if kind == "area" else rng.randint(2, 3))]))
        self.parts += [("field", [new()]) for k in kinds if k == "field"]
        rng.shuffle(self.parts)
        self.buttons = [rng.choice(words.CLOSING)] + ([rng.choice(words.DISMISS)] if rng.random() < 0.6 else [])
        taken |= {b.lower() for b in self.buttons}
        self.title, self.text = lex.label(16), lex.sentence(3, 6) if rng.random() < 0.5 else ""
        self.values, self.steps, said = {}, [], []
        for kind, labels in rng.sample(self.parts, rng.randint(1, len(self.parts))):
            said.append(self.todo(rng, lex, kind, labels))
        self.steps.append((self.buttons[0], None))
        sentence = ", ".join([said[0]] + [s[0].lower() + s[1:] for s in said[1:]])
        self.task = sentence + rng.choice((", then press {}", " and press {}", ", then click {}")).format(self.buttons[0])

    def todo(self, rng, lex, kind, labels):
        """Returns a subtask in words, and stores the expected value."""
        if kind in ("field", "area"):
            self.values[labels[0]] = lex.typed()
            self.steps.append((labels[0], self.values[labels[0]]))
            return tasks.fill(rng, [(labels[0], self.values[labels[0]])]).sentence
        chosen = rng.sample(labels, 1 if kind == "options" else rng.randint(1, 2))
        chosen.sort(key=labels.index)
        self.values[kind] = ",".join(chosen)
        self.steps += [(label, None) for label in chosen]
        return (tasks.tick(rng, chosen) if kind == "ticks" else tasks.choose(rng, chosen[0])).sentence

    def query(self):
        parts = "|".join(f"{kind}:{','.join(labels)}" for kind, labels in self.parts)
        q = {"theme": self.theme, "title": self.title, "text": self.text, "parts": parts,
             "buttons": "|".join(self.buttons)}
        return urlencode({k: v for k, v in q.items() if v}, quote_via=quote)

    def verdict(self):
        out = ["FORM pressed=" + self.buttons[0]]
        for kind, labels in self.parts:
            name = {"ticks": "ticked", "options": "chosen"}.get(kind, labels[0])
            out.append(f"{name}={self.values.get(labels[0] if kind in ('field', 'area') else kind, '')}")
        return ";".join(out)


def escaped(text):
    return "".join("\\" + c if c in "\\.[]{}()*+?^$|" else c for c in text)


def quoted(text):
    assert not set("{}") & set(text), text
    return "'" + text.replace("'", "''") + "'"


def suite(forms):
    print("# A hundred web forms in themes that were never trained on.  Made by tests/scripts/form_cases.py.")
    print('suite:\n  name: forms\n  display: xvfb:640x480\n'
          '  start: exec "{dir}/browser.sh" "file://{dir}/forms/form.html?{page}"\n'
          "  window: ^FORM pressed=\n  start_timeout_s: 60\n  steps: 10\n  timeout_s: 60\n  checks:\n"
          "    - { kind: window, title: '{title}', when: always }\ntests:")
    for f in forms:
        print(f"- id: {f.name}\n  tags: [{f.theme}]\n  task: {quoted(f.task)}")
        print(f"  vars: {{ page: {quoted(f.query())}, title: {quoted('^' + escaped(f.verdict()) + '( - Chromium)?$')} }}")


DRIVER = """<!doctype html><meta charset="utf-8"><body><script>
const pages = %s, out = [];
(async () => {
  for (const page of pages) {
    const f = document.createElement("iframe");
    f.width = %d; f.height = %d; f.style.border = 0; f.src = page;
    await new Promise(done => { f.onload = done; document.body.append(f); });
    await f.contentDocument.fonts.ready;
    out.push(f.contentWindow.boxes());
    f.remove();
  }
  document.body.textContent = btoa(Array.from(new TextEncoder().encode(JSON.stringify(out)), b => String.fromCharCode(b)).join(""));
})();
</script></body>"""


def all_boxes(forms):
    """Returns {label: [x, y, whether it is on the screen]} for each form."""
    page = (ROOT / "tests/suites/forms/form.html").as_uri()
    with tempfile.TemporaryDirectory() as folder:
        driver = pathlib.Path(folder) / "boxes.html"
        driver.write_text(DRIVER % (json.dumps([f"{page}?{f.query()}" for f in forms]), *SCREEN))
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        got = subprocess.run(["chromium", "--headless", *root, f"--user-data-dir={folder}/profile", "--disable-gpu",
                              "--disable-dev-shm-usage", "--allow-file-access-from-files", "--timeout=300000",
                              "--virtual-time-budget=300000", "--dump-dom", driver.as_uri()],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
    found = re.search(r"<body>([A-Za-z0-9+/=]+)</body>", got)
    if not found:
        sys.exit("form_cases.py: Chromium does not say where the forms' parts are")
    return json.loads(base64.b64decode(found[1]))


def right(forms, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for f, boxes in zip(forms, all_boxes(forms)):
        lines = []
        for label, text in f.steps:
            x, y, seen = boxes[label]
            if not seen:
                sys.exit(f"form_cases.py: {f.name}: '{label}' lies outside the screen")
            lines.append(f"pyautogui.click({x}, {y})")
            if text is not None:
                lines.append(f"pyautogui.write({text!r})")
        (folder / f"{f.name}.txt").write_text("\n".join(lines + ["DONE()"]) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--right", type=pathlib.Path, metavar="DIR", help="write scripts that do it right")
    a = p.parse_args()
    forms = [Form(k) for k in range(FORMS)]
    right(forms, a.right) if a.right else suite(forms)


if __name__ == "__main__":
    main()
