#!/usr/bin/env python3
"""Measures plain steps (`holorun run --plain only`) on real programs: tests/cases/plain/tasks.py.

    plain_tasks.py [--only REGEX] [--group spec|new|third] [--jobs N] [--json FILE] [--keep DIR] [--list]
                   [--program FILE]

Each task gets a desktop of its own (`holorun desk`) with a fresh home folder. Its judge runs there afterwards: a shell
command with an expected output. Prints a table by program:

    done     holorun said done, and the judge agrees                                  right
    refused  holorun stopped, as the task demands, and the judge agrees               right
    false    holorun said done, and the judge does not agree                          the worst
    stopped  holorun stopped and said why; the judge does not agree
    silent   holorun stopped although the judge agrees
    broken   the program or the desktop did not start

Needs ./holorun, openbox, xdotool, xclip, unzip and the programs in tasks.py; tasks of missing programs are skipped.
"""
import argparse
import collections
import concurrent.futures
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zipfile
from xml.etree import ElementTree
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests/cases/plain"
BUILD = ROOT / "build/plain"
OUTCOMES = ("done", "refused", "false", "stopped", "silent", "broken")
START_S, RUN_S, JUDGE_S = 240, 150, 5
COMMANDS = {
    "office": "soffice --norestore --nologo --nofirststartwizard -env:UserInstallation=file://\"$HOME\"/lo",
    "firefox": "firefox-esr --no-remote --new-instance --profile \"$HOME\"/ff",
    "chromium": "chromium --no-sandbox --no-first-run --password-store=basic --test-type --window-position=0,0 "
                "--window-size=1270,770",
}
FIREFOX = """user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("termsofuse.bypassNotification", true);
user_pref("signon.rememberSignons", false);
"""
OFFICE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Misc"><prop oor:name="ShowTipOfTheDay" oor:op="fuse"><value>false</value></prop></item>
<item oor:path="/org.openoffice.Setup/Product"><prop oor:name="ooSetupLastVersion" oor:op="fuse"><value>7.4</value></prop></item>
<item oor:path="/org.openoffice.Setup/Product"><prop oor:name="WhatsNew" oor:op="fuse"><value>false</value></prop></item>
</oor:items>
"""

# ---- documents -------------------------------------------------------------------------------------------------------

OASIS = "urn:oasis:names:tc:opendocument:xmlns:"
NAMES = {p: OASIS + n + ":1.0" for p, n in
         {"office": "office", "text": "text", "table": "table", "manifest": "manifest"}.items()}


def write_document(path, kind, body):
    """Writes an OpenDocument file; kind: text or spreadsheet."""
    spaces = " ".join(f'xmlns:{p}="{n}"' for p, n in NAMES.items())
    content = (f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {spaces} office:version="1.2">'
               f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>")
    media = "application/vnd.oasis.opendocument." + kind
    manifest = (f'<?xml version="1.0" encoding="UTF-8"?><manifest:manifest {spaces} manifest:version="1.2">'
                f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{media}"/>'
                '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
                "</manifest:manifest>")
    with zipfile.ZipFile(path, "w") as z:
        z.writestr(zipfile.ZipInfo("mimetype"), media)
        z.writestr("content.xml", content)
        z.writestr("META-INF/manifest.xml", manifest)


def cell(value):
    number = isinstance(value, (int, float))
    told = f' office:value-type="float" office:value="{value}"' if number else ' office:value-type="string"'
    return f"<table:table-cell{told}><text:p>{escape(str(value))}</text:p></table:table-cell>"


def write_file(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".odt":
        write_document(path, "text", f"<text:p>{escape(content)}</text:p>")
    elif path.suffix == ".ods":
        names = ["First", "Second", "Third"]
        sheets = ("".join("<table:table-row>" + "".join(map(cell, row)) + "</table:table-row>" for row in rows)
                  for rows in content)
        write_document(path, "spreadsheet", "".join(f'<table:table table:name="{n}">{s}</table:table>'
                                                    for n, s in zip(names, sheets)))
    else:
        path.write_text(content)


def tree_of(path):
    with zipfile.ZipFile(path) as z:
        return ElementTree.fromstring(z.read("content.xml"))


def tag(prefix, name):
    return "{" + NAMES[prefix] + "}" + name


def times(node, name):
    return min(int(node.get(tag("table", f"number-{name}-repeated"), "1")), 50)


def ods_rows(table):
    for row in table.iter(tag("table", "table-row")):
        values = []
        for c in row:
            values += ["".join(c.itertext())] * (times(c, "columns") if "".join(c.itertext()) else 1)
        while values and not values[-1]:
            values.pop()
        if values:
            yield ",".join(values)


def read_document(what, path, sheet="1"):
    tree = tree_of(path)
    if what == "odt_text":
        return "\n".join("".join(p.itertext()) for p in tree.iter() if p.tag in (tag("text", "p"), tag("text", "h")))
    tables = list(tree.iter(tag("table", "table")))
    if what == "odt_table":
        columns = sum(times(c, "columns") for c in tables[0].iter(tag("table", "table-column")))
        return f"{len(list(tables[0].iter(tag('table', 'table-row'))))}x{columns}"
    if what == "ods_sheets":
        return "\n".join(t.get(tag("table", "name")) for t in tables)
    return "\n".join(ods_rows(tables[int(sheet) - 1]))


# ---- pages -----------------------------------------------------------------------------------------------------------

LOGS = collections.defaultdict(list)


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves pages below /ID/, and keeps their reports, by task."""

    def __init__(self, *a, **k):
        super().__init__(*a, directory=str(CASES / "pages"), **k)

    def translate_path(self, path):
        return super().translate_path("/" + path.split("/", 2)[-1])

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        _, name, what = self.path.split("/", 2)
        pairs = urllib.parse.parse_qsl(body, keep_blank_values=True)
        LOGS[name].append(body if what == "log" else "|".join(f"{k}={v}" for k, v in pairs))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><title>Welcome</title><h1>Account created</h1>")

    def log_message(self, *a):
        pass


# ---- one task --------------------------------------------------------------------------------------------------------


def prepare(home, task, url):
    """Writes the files of a task and the script that starts its program."""
    home.mkdir(parents=True)
    for name, content in task["files"].items():
        write_file(home / name, content)
    if "{office}" in task["start"]:
        write_file(home / "lo/user/registrymodifications.xcu", OFFICE)
    if "{firefox}" in task["start"]:
        write_file(home / "ff/user.js", FIREFOX)
    start = task["start"]
    for name, value in {**COMMANDS, "url": f"{url}/{task['id']}", "cases": str(CASES), "build": str(BUILD)}.items():
        start = start.replace("{" + name + "}", value)
    (home / "start.sh").write_text(f'cd "$HOME"; env -0 >.env\n{start} >out 2>err\necho $? >code\n')


def windows(env):
    found = subprocess.run(["xdotool", "search", "--onlyvisible", "--name", ".", "getwindowname", "%@"], env=env,
                           capture_output=True, text=True, timeout=20)
    return sorted(found.stdout.splitlines())


def wait_for_window(env):
    """Waits until the program has a window, and its windows have stayed the same for three seconds."""
    begin, last, since = time.time(), None, time.time()
    while time.time() - begin < START_S:
        now = windows(env)
        if now != last:
            last, since = now, time.time()
        elif now and time.time() - since > 3:
            return True
        time.sleep(0.25)
    return False


def judge(task, env, home):
    """Returns the last output of the judge; waits until it is as expected."""
    prelude = "".join(f'{n}() {{ "{sys.executable}" "{__file__}" read {n} "$@"; }}\n'
                      for n in ("odt_text", "odt_table", "ods_text", "ods_sheets"))
    begin, said = time.time(), ""
    expected = task["expect"].rstrip("\n")
    while time.time() - begin < JUDGE_S:
        if task["judge"] == "log":
            said = "\n".join(LOGS[task["id"]])
        else:
            ran = subprocess.run(["sh", "-c", prelude + task["judge"]], env=env, cwd=home, capture_output=True,
                                 text=True, timeout=30)
            said = ran.stdout.rstrip("\n")
        if said == expected and not (task["stops"] and time.time() - begin < 1):
            return said, True
        time.sleep(0.3)
    return said, False


def desk_env(home):
    pairs = (home / ".env").read_bytes().decode().split("\0")
    return dict(p.split("=", 1) for p in pairs if "=" in p)


def attempt(task, folder, url, holorun):
    home = folder / task["id"] / "home"
    prepare(home, task, url)
    result = {k: task[k] for k in ("id", "program", "group", "task", "stops")}
    with open(home.parent / "desk.log", "w") as log:
        desk = subprocess.Popen([holorun, "desk", "--json", "--size", "1280x800", "--home", home, "--", "sh",
                                 str(home / "start.sh")], stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        told = json.loads(desk.stdout.readline() or "{}")
        env = dict(os.environ, DISPLAY=told.get("display", ""), XAUTHORITY=told.get("xauthority", ""))
        if not told or not wait_for_window(env):
            return dict(result, outcome="broken", said="no window")
        begin = time.time()
        ran = subprocess.run([holorun, "run", task["task"], "--plain", "only", "--display", told["display"],
                              "--confirm", "yes-to-all", "--runs", folder / task["id"] / "runs", "--max-time",
                              str(RUN_S), "--quiet"], env=env, capture_output=True, text=True, timeout=RUN_S + 60)
        result["seconds"] = round(time.time() - begin, 1)
        judged, agrees = judge(task, desk_env(home), home)
    finally:
        desk.send_signal(signal.SIGTERM)
        try:
            desk.wait(30)
        except subprocess.TimeoutExpired:
            desk.kill()
    done = ran.returncode == 0
    if done:
        outcome = "done" if agrees and not task["stops"] else "false"
    elif task["stops"]:
        outcome = "refused" if agrees else "stopped"
    else:
        outcome = "silent" if agrees else "stopped"
    said = (ran.stdout + ran.stderr).strip().splitlines()
    return dict(result, outcome=outcome, code=ran.returncode, said=" / ".join(said)[-600:], judged=judged[-300:],
                expected=task["expect"])


# ---- all -------------------------------------------------------------------------------------------------------------


def print_table(results):
    """Prints a row for each program."""
    programs = list(dict.fromkeys(r["program"] for r in results))
    print(f"{'':12}{'tasks':>6}{'right':>6}" + "".join(f"{o:>9}" for o in OUTCOMES))
    for program in programs + ["all"]:
        rows = [r for r in results if program in (r["program"], "all")]
        count = collections.Counter(r["outcome"] for r in rows)
        print(f"{program:12}{len(rows):6}{count['done'] + count['refused']:6}"
              + "".join(f"{count[o] or '':>9}" for o in OUTCOMES))


def missing(task):
    words = task["start"].split()
    first = {"{office}": "soffice", "{firefox}": "firefox-esr", "{chromium}": "chromium"}.get(words[0], words[0])
    return not shutil.which(first) or (task["program"] == "swing" and not (BUILD / "Form.class").exists())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="", help="tasks whose id contains this regular expression")
    p.add_argument("--group", help="spec, new or third")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--json", help="file for the results")
    p.add_argument("--keep", help="folder for homes and records; default: a temporary one")
    p.add_argument("--program", default=str(ROOT / "holorun"), help="holorun to be measured; default: ./holorun")
    p.add_argument("--list", action="store_true", help="print the tasks")
    o = p.parse_args()
    sys.path.insert(0, str(CASES))
    sys.dont_write_bytecode = True
    from tasks import TASKS
    chosen = [t for t in TASKS if re.search(o.only, t["id"]) and o.group in (None, t["group"])]
    if o.list:
        for t in chosen:
            print(f"{t['id']:14}{t['task']}")
        return
    if shutil.which("javac") and not (BUILD / "Form.class").exists():
        subprocess.run(["javac", "-d", BUILD, CASES / "Form.java"], check=True)
    skipped = [t["id"] for t in chosen if missing(t)]
    chosen = [t for t in chosen if t["id"] not in skipped]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    folder = pathlib.Path(o.keep or tempfile.mkdtemp(prefix="plain-"))
    results = []
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for r in pool.map(lambda t: attempt(t, folder, url, o.program), chosen):
            results.append(r)
            right = r["outcome"] in ("done", "refused")
            print(f"{r['id']:14}{r['outcome']:9}{r.get('seconds', 0):6}  " + ("" if right else
                  f"{r['task']}\n    said: {r['said']}\n    judged {r.get('judged')!r}, not {r.get('expected')!r}"),
                  flush=True)
    print_table(results)
    if skipped:
        print("skipped, program missing:", " ".join(skipped))
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(results, indent=1) + "\n")
    if not o.keep:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        print(read_document(*sys.argv[2:]))
    else:
        main()
