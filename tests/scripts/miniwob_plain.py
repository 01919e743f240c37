#!/usr/bin/env python3
"""Turns tests of MiniWoB++ whose sentence is a list of plain steps into a suite in steps, which needs no model.

    tests/scripts/miniwob.sh suite 4 | tests/scripts/miniwob_plain.py >build/qa/miniwob-plain.yaml
    ./holorun qa build/qa/miniwob-plain.yaml

The rules below translate the wording of a page, not its content: names and texts are taken from the sentence. Pages
that ask for more than that (comparing, counting, dragging, searching) are left out. The pages judge as in miniwob.yaml.
"""
import json
import pathlib
import re
import sys

SUITES = pathlib.Path(__file__).resolve().parents[1] / "suites"
TEST = re.compile(r"- \{ id: (?P<id>\S+), seed: (?P<seed>\d+), tags: \[(?P<page>[^]]+)\], steps: (?P<steps>\d+), "
                  r"vars: \{ page: \S+, says: '(?P<says>(?:[^']|'')*)' \}")
SUBMIT = {"press": "Submit"}


def items(text):
    """Splits "a, b, c", which is "nothing" for none."""
    return [] if text == "nothing" else text.split(", ")


def press_all(m):
    return [{"press": name} for name in m.groups()]


def tick_all(m):
    return [{"tick": name} for name in items(m[1])] + [SUBMIT]


def login(m):
    return [{"fill": {"Username": m[1], "Password": m[2]}}, {"press": "Login"}]


# page: (pattern of the whole sentence, steps from its match)
RULES = {
    "choose-list": (r"Select (.+) from the list and click Submit\.", lambda m: [{"choose": m[1]}, SUBMIT]),
    "click-button": (r'Click on the "(.+)" button\.', press_all),
    "click-button-sequence": (r"Click button (\w+), then click button (\w+)\.", press_all),
    "click-checkboxes": (r"Select (.+) and click Submit\.", tick_all),
    "click-checkboxes-large": (r"Select (.+) and click Submit\.", tick_all),
    "click-checkboxes-transfer": (r"Select (.+) and click Submit\.", tick_all),
    "click-dialog-2": (r'Click the button in the dialog box labeled "(\w+)"\.', press_all),
    "click-link": (r'Click on the link "(.+)"\.', press_all),
    "click-menu": (r"Select (.+)", lambda m: [{"menu": m[1].split(">")}]),
    "click-option": (r"Select (.+) and click Submit\.", lambda m: [{"press": m[1]}, SUBMIT]),
    "click-tab": (r"Click on (Tab #\d)\.", lambda m: [{"tab": m[1]}]),
    "click-test": (r"Click the button\.", lambda m: [{"press": "Click Me!"}]),
    "click-test-2": (r"Click button (\w+)\.", press_all),
    "click-test-transfer": (r"Click button (\w+)\.", press_all),
    "navigate-tree": (r'Navigate through the file tree\. Find and click on the folder or file named "(.+)"\.', press_all),
    "form-sequence-3": (r'Choose (.+) from the dropdown, then click the button labeled "(.+)"\.',
                        lambda m: [{"choose": m[1]}, {"press": m[2]}]),
    "social-media": (r'For the user (@\w+), click on the "(.+)" button\.',
                     lambda m: [{"do": f'press "{m[2]}" in the row of {m[1]}'}]),
    "login-user": (r'Enter the username "(.+)" and the password "(.+)" into the text fields and press login\.', login),
    "login-user-popup": (r'Enter the username "(.+)" and the password "(.+)" into the text fields and press login\.',
                         login),
}


def main():
    head, tests = [], []
    for line in sys.stdin:
        m = TEST.match(line)
        if m:
            tests.append(m)
        elif not line.startswith("- {"):
            head.append(line)
    text = "".join(head).replace("{dir}", str(SUITES)).replace("name: miniwob", "name: miniwob-plain")
    sys.stdout.write("".join(line + "\n" for line in text.splitlines() if not line.startswith("#")))
    for m in tests:
        says = m["says"].replace("''", "'")
        pattern, steps = RULES.get(m["page"], (None, None))
        found = steps and re.fullmatch(pattern, says)
        if found:
            given = {"id": m["id"], "seed": int(m["seed"]), "tags": [m["page"]],
                     "vars": {"page": m["page"], "says": says}, "task": steps(found)}
            print("-", json.dumps(given))  # JSON is YAML


if __name__ == "__main__":
    main()
