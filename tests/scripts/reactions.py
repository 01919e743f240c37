#!/usr/bin/env python3
"""Counts how often a run decides on a screen that is not finished, or acts on another screen than its model has seen.

    reactions.py [N] [--program ./holorun[:yes|no[:QUIET]]] [--think 0.06] [--kind NAME | --writes | --empty] [--json FILE]

N trials (100) in turn of the kinds of reactions below: pages in Chromium, and windows of Tk, Qt and GTK. In each, the
model presses a button (with --writes: writes into a field), and its next action presses a place beside it. With
--empty the press makes the content emptier, as pages do while they load, or for good. A square in the corner shows the state of the page as a colour, drawn with the change itself:

    too early   the screenshot of the second action shows another state than the page has 2 s later
    unseen      at the second press the page was in another state than the screenshot shows

The model is an HTTP server of this script that thinks for a given time (several after commas: in turn). Several
programs take turns; the values of --think-early and --settle-quiet follow a colon each. --most N: exit code 1 if more than N in 100 were too early or any
press was unseen. Needs Xvfb, openbox, chromium, and /usr/bin/python3 with tkinter, PyQt5 and GTK 3. Runs from the root
of the source tree.
"""
import argparse
import collections
import glob
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import observed

COLOURS = ["#204060", "#c02020", "#20a040", "#8020c0"]
START, BESIDE, FIELD = (200, 130), (420, 420), (560, 112)
# Each script runs at the press of the button; state(n) shows a state, with a text.
SCRIPTS = {
    "paints once": "state(1)",
    "field with a caret": "field.focus(); state(1)",
    "menu animation": "menu.style.height = '300px'; menu.ontransitionend = () => state(1)",
    "smooth scrolling": "box.onscrollend = () => state(1); box.scrollTo({top: 900, behavior: 'smooth'})",
    "new page": "location = '/page/second'",
    "changes after 150": "setTimeout(state, 150, 1)",
    "200 ms of script": "let t = performance.now(); while (performance.now() < t + 200); state(1)",
    "changes after 300": "setTimeout(state, 300, 1)",
    "changes after 600": "setTimeout(state, 600, 1)",
    "greys, then 300": "state(1); setTimeout(state, 300, 2)",
    "spinner for 400": "spin.hidden = false; setTimeout(() => { spin.hidden = true; state(1) }, 400)",
    "spinner for ever": "spin.hidden = false; state(1)",
    "video beside it": "video(); setTimeout(state, 20, 1)",
    "skeleton, then 150": "rows(); refill(150)",
    "skeleton, then 250": "rows(); refill(250)",
    "skeleton, then 450": "rows(); refill(450)",
}
WINDOWS = {"Tk button": ["tk"], "Qt button": ["qt"], "GTK revealer": ["gtk"]}
KINDS = [*SCRIPTS, *WINDOWS]
# Each runs at a change of the field's text; later() begins again with each change, as search fields do.
WRITE_SCRIPTS = {
    "write: no reaction": "state(1)",
    "write: list after 150": "later(150, open)",
    "write: list after 250": "later(250, open)",
    "write: list after 300": "later(300, open)",
    "write: message after 150": "later(150, state, 1)",
    "write: message after 250": "later(250, state, 1)",
    "write: reformatted after 150": "later(150, () => { field.value = field.value.toUpperCase(); state(1) })",
}
WRITE_WINDOWS = {
    "write: GTK, list after 150": ["gtk_write", "150"],
    "write: GTK, list after 250": ["gtk_write", "250"],
    "write: Qt, list after 150": ["qt_write", "150"],
    "write: Qt, list after 250": ["qt_write", "250"],
}
WRITE_KINDS = [*WRITE_SCRIPTS, *WRITE_WINDOWS]
# The content becomes emptier. Those named "ends" are finished at once; the last is not, but its screen looks so.
EMPTY_SCRIPTS = {
    "empty: grey rows, then 600": "rows(); refill(600)",
    "empty: blank, then 450": "content.innerHTML = ''; refill(450)",
    "empty: blank page, then 450": "text.hidden = box.hidden = field.hidden = start.hidden = content.hidden = true; refill(450)",
    "empty: round cards, then 450": "content.innerHTML = '<div class=card><i></i><b></b><b></b></div>'.repeat(6); refill(450)",
    "empty: table, then 450": "for (const cell of content.querySelectorAll('td')) cell.textContent = ''; refill(450)",
    "empty: pulsing rows, then 600": "rows('pulse'); refill(600)",
    "empty: row after row from 400": "rows(); setTimeout(() => { mark(1); content.innerHTML = lines('new', 4); }, 400); refill(750)",
    "empty: Loading, then 450": "content.innerHTML = 'Loading…'; refill(450)",
    "ends: dialog over text": "modal.hidden = true; mark(1)",
    "ends: dialog over blank": "modal.hidden = true; mark(1)",
    "ends: short field cleared": "field.value = ''; mark(1)",
    "ends: three rows deleted": "for (let i = 3; i--;) content.querySelector('p').remove(); mark(1)",
    "ends: another page of text": "fill('new'); mark(1)",
    "ends: text, then 450": "state(1); setTimeout(state, 450, 2)",
}
FIRST = {
    "empty: table, then 450": "content.innerHTML = '<table>' + ('<tr>' + '<td>paid on 12 May</td>'.repeat(3)).repeat(9) + '</table>'",
    "ends: dialog over text": "fill('old'); modal.hidden = false",
    "ends: dialog over blank": "modal.hidden = false",
    "ends: short field cleared": "field.value = 'Ana Lima, Rome'",
}
EMPTY_WINDOWS = {"empty: GTK stack, then 450": ["gtk_stack", "450"]}
EMPTY_KINDS = [*EMPTY_SCRIPTS, *EMPTY_WINDOWS]
PAGES = SCRIPTS | WRITE_SCRIPTS | EMPTY_SCRIPTS
PAGE = """<!doctype html><title>Page</title><style>body{margin:0;font:40px sans-serif;background:#fff;height:800px;overflow:hidden}
body>*{position:absolute}#square{width:24px;height:24px}#start{left:100px;top:100px;width:200px;height:60px}
#text{left:200px;top:300px}#field{left:500px;top:100px}#menu{left:350px;top:200px;width:200px;height:0;background:#cde;
overflow:hidden;transition:height .2s}#box{left:600px;top:200px;width:300px;height:300px;overflow:auto}
#spin{left:700px;top:600px;width:60px;height:60px;border:6px solid #888;border-top-color:#04f;border-radius:50%;
animation:r 1s linear infinite}#list{left:350px;top:350px;width:200px;height:150px;background:#cde}@keyframes r{to{transform:rotate(360deg)}}canvas{left:700px;top:600px}
#content{left:60px;top:480px;width:520px;height:290px;font:16px sans-serif;overflow:hidden}p{margin:4px 0}
.grey{height:14px;margin:10px 0;background:#ccc}.pulse{animation:p 1s infinite alternate}@keyframes p{to{opacity:.5}}
.card{float:left;width:150px;height:120px;margin:8px;border-radius:12px;background:#eee}.card b{display:block;height:12px;
margin:10px;border-radius:6px;background:#ccc}.card i{display:block;width:36px;height:36px;margin:10px;border-radius:50%;background:#ccc}
td{border:1px solid #888;width:150px;height:22px}#modal{left:80px;top:490px;width:460px;height:260px;font:18px sans-serif;
background:#fff;border:1px solid #444}</style>
<div id=square></div><button id=start>Start</button><div id=text></div><input id=field><div id=menu>one<br>two<br>three</div>
<div id=content></div><div id=modal hidden>Delete the message?<p>It cannot be restored.<p>All of its attachments are deleted too.
<p>The sender is not told.<p>Press Start to delete it.<p>Press Escape to keep it.</div><div id=list hidden>one<br>two</div><div id=box></div><div id=spin hidden></div><canvas id=film width=160 height=120></canvas><script>
const colours = COLOURS, texts = ['waiting', 'loaded', 'finished'];
let now = 0;
function mark(n) { now = n; square.style.background = colours[n]; }
function state(n) { mark(n); text.textContent = texts[n]; }
function lines(word, n) { return [...Array(n).keys()].map(i => `<p>${word} message ${i}: the invoice of ${i + 3} March is paid</p>`).join(''); }
function fill(word) { content.innerHTML = lines(word, 11); }
function rows(more) { content.innerHTML = `<div class="grey ${more}"></div>`.repeat(11); }
function refill(ms) { mark(1); setTimeout(() => { content.hidden = false; fill('new'); mark(2); }, ms); }
function video() { const c = film.getContext('2d'); let i = 0; setInterval(() => {
  c.fillStyle = `hsl(${i++ * 7 % 360} 80% 50%)`; c.fillRect(i * 5 % 160, 0, 40, 120); }, 40); }
box.innerHTML = [...Array(60).keys()].map(i => 'row ' + i + '<br>').join('');
addEventListener('mousedown', () => fetch('/pressed/' + now, {method: 'POST', keepalive: true}), true);
let timer = 0;
function later(ms, what, ...with_) { clearTimeout(timer); timer = setTimeout(what, ms, ...with_); }
function open() { list.hidden = false; state(1); }
start.onclick = () => { REACT };
field.oninput = () => { WRITTEN };
state(FIRST);
INITIAL;
(async () => { for (;;) { const to = await (await fetch('/next')).text(); if (to) { location = to; return; }
  await new Promise(r => setTimeout(r, 300)); } })();
</script>"""


def first(kind):
    """Returns the script that runs when the page of this kind is opened."""
    script = PAGES.get(kind, "")
    return FIRST.get(kind, "fill('old')" if re.search(r"refill|fill\(|content\.", script) else "")


def write(x, y):
    return observed.reply("write_at_desktop", element="it", content="rome", overwrite=True,
                          x=round(x * 1000 / observed.W), y=round(y * 1000 / observed.H))


class Server(http.server.ThreadingHTTPServer):
    """Serves the pages, the model, and notes presses."""

    daemon_threads = True

    def __init__(self):
        self.next, self.pressed, self.think, self.asked, self.writes = "", [], 0.0, 0, False
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Ignores clients that have gone."""


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def send(self, body, kind="text/html"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self):
        if self.path.startswith("/next"):
            to, self.server.next = self.server.next, ""
            return self.send(to)
        n = re.search(r"/page/(\d+)", self.path)
        kind = list(PAGES)[int(n[1])] if n else ""
        self.send(PAGE.replace("COLOURS", json.dumps(COLOURS)).replace("REACT", (SCRIPTS | EMPTY_SCRIPTS).get(kind, ""))
                  .replace("WRITTEN", WRITE_SCRIPTS.get(kind, "")).replace("INITIAL", first(kind))
                  .replace("FIRST", "0" if n or "start" in self.path else "1"))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/pressed/"):
            self.server.pressed.append(int(self.path.split("/")[2]))
            return self.send("")
        self.server.asked += 1
        time.sleep(self.server.think)
        done = sum(m["role"] == "assistant" for m in json.loads(body)["messages"])
        replies = [write(*FIELD) if self.server.writes else observed.click(*START), observed.click(*BESIDE), observed.reply("wait_desktop", seconds=2),
                   observed.reply("answer", content="Done.")]
        parts = [{"choices": [{"delta": {"content": replies[min(done, 3)]}}]},
                 {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
        self.send("".join(f"data: {json.dumps(p)}\n\n" for p in parts) + "data: [DONE]\n\n", "text/event-stream")


def state_shown(path):
    """Returns the state that the square in the corner of a PNG file shows, or None."""
    with open(path, "rb") as f:
        png = f.read()
    at, data = 8, b""
    while at < len(png):
        size, kind = int.from_bytes(png[at:at + 4], "big"), png[at + 4:at + 8]
        if kind == b"IHDR":
            width, channels = int.from_bytes(png[at + 8:at + 12], "big"), {2: 3, 6: 4}[png[at + 17]]
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    row, n = width * channels + 1, channels
    raw = zlib.decompressobj().decompress(data, 13 * row)
    last = bytearray(row - 1)
    for y in range(13):
        how, line = raw[y * row], bytearray(raw[y * row + 1:(y + 1) * row])
        for i in range(len(line)):
            a, b, c = (line[i - n], last[i], last[i - n]) if i >= n else (0, last[i], 0)
            p = a + b - c
            near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[i] = (line[i] + [0, a, b, (a + b) // 2, near][how]) & 255
        last = line
    seen = last[12 * n:12 * n + 3]
    for k, colour in enumerate(COLOURS):
        if all(abs(v - int(colour[1 + 2 * i:3 + 2 * i], 16)) < 12 for i, v in enumerate(seen)):
            return k
    return None


def run(place, server, o):
    runs = tempfile.mkdtemp(dir=place.dir)
    program, early, quiet = (o.now.split(":") + ["", ""])[:3]
    options = ["--think-early", early] if early else []
    options += ["--settle-quiet", quiet] if quiet else []
    subprocess.run([program, "run", "Press Start", "--quiet", "--base-url", server.url + "/v1", "-m", "tiny", "--runs",
                    runs, "--dialect", "holo3", "--no-report", "--confirm", "yes-to-all", "--max-steps", "6",
                    "--max-time", "90", *options], env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=120, check=False)
    events = []
    for path in glob.glob(f"{runs}/*/events.jsonl"):
        with open(path) as f:
            events += [json.loads(line) for line in f]
    folder = (glob.glob(f"{runs}/*/") or [""])[0]
    frames = [state_shown(f"{folder}frames/{e['frame']:06d}.png") for e in events if e["kind"] == "observe"]
    return events, frames


def show(place, server, kind):
    """Opens the page or window of this kind; returns a program to end, or None."""
    window = (WINDOWS | WRITE_WINDOWS | EMPTY_WINDOWS).get(kind)
    if window:
        app = place.start(["/usr/bin/python3", "tests/scripts/reactions_app.py", *window, server.url, *COLOURS])
        time.sleep(2.5)
        return app
    server.next = f"/page/{list(PAGES).index(kind)}"
    observed.wait_until(lambda: not server.next)
    time.sleep(1.5)
    return None


def trial(place, server, kind, o):
    app = show(place, server, kind)
    server.pressed, server.asked, server.writes = [], 0, kind in WRITE_KINDS
    start = time.time()
    events, frames = run(place, server, o)
    ended = app and app.poll() is not None
    if app:
        app.kill()
        app.wait()
    times = {}
    for e in events:
        times.setdefault((e["step"], e["kind"]), e["t_mono_ns"] / 1e6)
    got = {"program": o.now, "think": server.think, "kind": kind, "seconds": time.time() - start, "asked": server.asked, "frames": frames, "pressed": server.pressed,
           "cancelled": sum(e["kind"] == "cancelled" for e in events), "stale": sum(e["kind"] == "stale" for e in events)}
    if (2, "action") in times and (1, "exec") in times:
        got["step_ms"] = times[2, "action"] - times[1, "exec"]
    presses = [e["step"] for e in events if e["kind"] == "exec" and e["ok"]][:2]
    if ended or len(presses) < 2 or presses[1] > len(frames) or len(server.pressed) < 2 or len(frames) < 3:
        return got | {"broken": True}
    seen = frames[presses[1] - 1]
    return got | {"early": seen != frames[-1], "unseen": seen != server.pressed[1]}


def summary(results):
    rows = collections.defaultdict(list)
    for r in results:
        rows[r["kind"]].append(r)
    print(f"{'kind':28} trials  early unseen cancelled stale broken  step ms")
    for kind, of in [*rows.items(), ("all", results)]:
        steps = sorted(r["step_ms"] for r in of if "step_ms" in r) or [0]
        total = [sum(bool(r.get(key)) for r in of) for key in ("early", "unseen")]
        print(f"{kind:28} {len(of):6} {total[0]:6} {total[1]:6} {sum(r['cancelled'] for r in of):9} "
              f"{sum(r['stale'] for r in of):5} {sum('broken' in r for r in of):6} {steps[len(steps) // 2]:8.0f}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("n", nargs="?", type=int, default=100)
    p.add_argument("--program", action="append")
    p.add_argument("--think", default="0.06")
    p.add_argument("--kind", action="append")
    p.add_argument("--writes", action="store_true")
    p.add_argument("--empty", action="store_true")
    p.add_argument("--json")
    p.add_argument("--most", type=float, default=-1)
    p.add_argument("--display", type=int, default=9650)
    o = p.parse_args()
    server, place = Server(), observed.Place(o.display)
    kinds, thinks, results = o.kind or (WRITE_KINDS if o.writes else EMPTY_KINDS if o.empty else KINDS), [float(t) for t in o.think.split(",")], []
    programs = o.program or ["./holorun"]
    try:
        place.start(["chromium", "--no-sandbox", "--kiosk", "--no-first-run", "--password-store=basic", "--test-type",
                     f"--window-size={observed.W},{observed.H}", f"--user-data-dir={place.dir}/profile",
                     "--disable-dev-shm-usage", server.url + "/page/start"])
        time.sleep(8)
        for i in range(o.n * len(programs)):
            o.now, k = programs[i % len(programs)], i // len(programs)
            server.think = thinks[k // len(kinds) % len(thinks)]
            results.append(trial(place, server, kinds[k % len(kinds)], o))
    except KeyboardInterrupt:
        pass
    finally:
        place.close()
    for program in programs:
        for think in thinks:
            of = [r for r in results if r["program"] == program and r["think"] == think]
            print(f"\n{program}, the model thinks for {think * 1000:.0f} ms, load {os.getloadavg()[0]:.0f}")
            summary(of)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(results, f, indent=1)
    early, unseen = (sum(bool(r.get(key)) for r in results) for key in ("early", "unseen"))
    valid = sum("early" in r for r in results)
    sys.exit(0 <= o.most and (valid == 0 or early * 100 > o.most * valid or unseen > 0))


main()
