#!/usr/bin/env python3
"""Tests whether a run acts on content that the model has not seen. Disturbs runs whose model takes 0.5 to 4 s, and runs
undisturbed steps on programs with carets, animations and clocks.

    observed.py interfere [N]      N disturbances of ten kinds (200); exit code 1 if a run acted on the wrong target
    observed.py quiet [N]          N steps in total on ten programs (1,000); exit code 1 above 2 false stops in 1,000
    observed.py ... --displays 3   that many in parallel     --first 9400: number of the first display     --keep DIR: records of stops

The model is an HTTP server of this script, the display is Xvfb with openbox. The results come from the log of the
window that received the input. Runs from the root of the source tree.
"""
import argparse
import collections
import concurrent.futures
import glob
import http.server
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib

W, H = 1000, 800
APP = ["/usr/bin/python3", "tests/scripts/observed_app.py"]
KINDS = ["dialog over the target", "focus to another program", "swapped buttons", "moved window", "scrolled list",
         "popup for 50 ms", "resized window", "minimised window", "other workspace", "notification over the target"]
PAGE = """<html><head><title>Page</title><style>@keyframes r{to{transform:rotate(360deg)}}
.s{width:24px;height:24px;border:3px solid #888;border-top-color:#04f;border-radius:50%;animation:r 1s linear infinite}
button:hover{background:#cdf}</style></head><body style="font:16px sans-serif"><h2>Orders</h2>
<p><span class=s style="display:inline-block"></span> <span id=c></span> <button>Save</button> <input value="text">
<button>Cancel</button></p><p>A paragraph of text that does not change, with <b>words</b> to click on.</p>
<textarea rows=6 cols=50>notes</textarea><p><input type=checkbox> remember <progress></progress></p>
<ul><li>one<li>two<li>three<li>four<li>five</ul>
<script>setInterval(()=>c.textContent=new Date().toLocaleTimeString(),500)</script></body></html>"""


def reply(tool, **arguments):
    return json.dumps({"note": None, "thought": "as planned", "tool_call": dict(tool_name=tool, **arguments)})


def click(x, y):
    return reply("click_desktop", element="it", x=round(x * 1000 / W), y=round(y * 1000 / H))


class Models(http.server.ThreadingHTTPServer):
    """/NAME/...: asks the function registered under NAME for each reply."""
    daemon_threads = True

    def handle_error(self, *_):
        """Ignores runs that ended while waiting for a reply."""

    def __init__(self):
        self.of = {}
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        text = self.server.of[self.path.split("/")[1]](body)
        parts = [{"choices": [{"delta": {"content": text}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for p in parts:
            self.wfile.write(f"data: {json.dumps(p)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")


class Place:
    """A private display with a window manager and a private home."""

    def __init__(self, number):
        self.dir = tempfile.mkdtemp(prefix="observed.")
        self.env = dict(os.environ, DISPLAY=f":{number}", HOME=self.dir, XDG_RUNTIME_DIR=self.dir, GDK_BACKEND="x11",
                        XDG_CONFIG_HOME=self.dir + "/config", XDG_CACHE_HOME=self.dir + "/cache", NO_AT_BRIDGE="1")
        for name in ("WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"):
            self.env.pop(name, None)
        os.chmod(self.dir, 0o700)
        self.programs = []
        self.start(["Xvfb", f":{number}", "-screen", "0", f"{W}x{H}x24", "-nolisten", "tcp", "-ac"])
        for _ in range(100):
            time.sleep(0.05)
            if subprocess.run(["xdotool", "getdisplaygeometry"], env=self.env, capture_output=True).returncode == 0:
                break
        self.start(["openbox"])
        time.sleep(0.5)

    def start(self, argv, **more):
        p = subprocess.Popen(argv, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True, **more)
        self.programs.append(p)
        return p

    def app(self, kind):
        log = f"{self.dir}/{kind}.log"
        open(log, "w").close()
        return self.start(APP + [kind, log], stdin=subprocess.PIPE, text=True), log

    def xdotool(self, *words):
        return subprocess.run(["xdotool", *map(str, words)], env=self.env, capture_output=True, text=True).stdout

    def run(self, url, steps, seconds):
        runs = f"{self.dir}/runs"
        shutil.rmtree(runs, ignore_errors=True)
        subprocess.run(["./holorun", "run", "Save the letter", "--quiet", "--base-url", url, "-m", "tiny", "--runs", runs,
                        "--no-report", "--confirm", "yes-to-all", "--max-steps", str(steps), "--max-time", str(seconds),
                        "--settle-max", "1000"], env=self.env,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(f"{self.dir}/err", "w"),
                       timeout=seconds + 60)
        with open(f"{self.dir}/err") as f:
            self.said = f.read().strip()
        events = []
        for path in glob.glob(f"{runs}/*/events.jsonl"):
            with open(path) as f:
                events += [json.loads(line) for line in f if line.strip()]
        return events

    def close(self):
        for p in reversed(self.programs):
            try:
                os.killpg(p.pid, 9)
            except ProcessLookupError:
                pass
            p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def tell(program, *words):
    program.stdin.write(" ".join(map(str, words)) + "\n")
    program.stdin.flush()


def wait_until(holds, seconds=30):
    end = time.time() + seconds
    while not holds() and time.time() < end:
        time.sleep(0.1)


def lines(path):
    with open(path) as f:
        return f.read().split("\n")[:-1]


# ---- interferences ------------------------------------------------------------------------------------------------


def interference(kind, place, app, chat, at, rnd):
    """Returns the function to call while the model thinks about a target at `at`."""
    x, y = at

    def popup():
        tell(chat, "plain", x - 60, y - 30, 160, 60)
        time.sleep(0.05)
        tell(chat, "hide")

    return {
        "dialog over the target": lambda: tell(chat, "show", x - 150, y - 100, 300, 200),
        "focus to another program": lambda: tell(chat, "show", 650, 500, 200, 150),
        "swapped buttons": lambda: tell(app, "swap"),
        "moved window": lambda: tell(app, "move", 150 + rnd.choice([-95, -60, 95, 60]), 120 + rnd.choice([0, 24, -24])),
        "scrolled list": lambda: tell(app, "scroll", rnd.choice([1, 2, 3, 5])),
        "popup for 50 ms": popup,
        "resized window": lambda: tell(app, "resize", rnd.choice([520, 600])),
        "minimised window": lambda: tell(app, "iconify"),
        "other workspace": lambda: place.xdotool("set_desktop", 1),
        "notification over the target": lambda: tell(chat, "plain", x - 80, y - 25, 200, 50),
    }[kind]


def interfere_once(models, number, kind, seed):
    rnd = random.Random(seed)
    toolkit = rnd.choice(["tk", "gtk3"])
    place = Place(number)
    try:
        app, app_log = place.app(toolkit)
        chat, chat_log = place.app("chat")
        wait_until(lambda: place.xdotool("search", "--onlyvisible", "--name", "^Mail$"))
        time.sleep(0.7)
        place.xdotool("set_num_desktops", 2)
        if kind in ("minimised window", "other workspace"): # a window that would get the click instead
            if kind == "other workspace":
                place.xdotool("set_desktop", 1)
            tell(chat, "show", 100, 80, 600, 600)
            time.sleep(0.5)
            place.xdotool("set_desktop", 0)
            place.xdotool("search", "--sync", "--onlyvisible", "--name", "^Mail$", "windowactivate", "windowraise")
            time.sleep(0.5)
        wait_until(lambda: place.xdotool("search", "--onlyvisible", "--name", "^Mail$"))
        time.sleep(0.5)
        tell(app, "where")
        wait_until(lambda: os.path.exists(app_log + ".places"))
        with open(app_log + ".places") as f:
            where = json.load(f)
        types = kind == "focus to another program" or (kind in ("minimised window", "other workspace",
                                                                "dialog over the target") and rnd.random() < 0.4)
        target = "row" if kind == "scrolled list" else "save"
        at = where["entry" if types else target]
        think = rnd.uniform(0.5, 4)
        when = rnd.uniform(max(0, think - 0.3), think + 0.15) if kind == "popup for 50 ms" else rnd.uniform(0.1, think)
        act = interference(kind, place, app, chat, at, rnd)
        asked = []

        def model(_):
            asked.append(1)
            if len(asked) > 1:
                return reply("answer", content="Done.")
            threading.Timer(when, act).start()
            time.sleep(think)
            return reply("write_desktop", content="hello there") if types else click(*at)

        name = f"i{number}-{seed}"
        models.of[name] = model
        events = place.run(f"http://127.0.0.1:{models.server_address[1]}/{name}/v1", 6, 60)
        time.sleep(0.3)
        got, elsewhere = lines(app_log), lines(chat_log)
        wanted = f"row {where['row_name']}" if target == "row" else "press Save"
        wrong = [g for g in got if g.startswith(("press", "row")) and g != wanted] + elsewhere
        stale = [e for e in events if e.get("kind") == "stale"]
        if wrong:
            place.said = " / ".join(lines(app_log + ".times"))
        done = any(g == wanted or g.startswith("text") for g in got)
        return kind, toolkit, len(asked), wrong, stale[0]["reason"] if stale else None, done, place.said
    finally:
        place.close()


def interfere(models, n, displays, first, seed):
    table = collections.defaultdict(collections.Counter)
    free = queue.Queue()
    for i in range(displays):
        free.put(first + i)

    def one(i):
        number = free.get()
        try:
            return interfere_once(models, number, KINDS[i % len(KINDS)], seed + i)
        finally:
            free.put(number)

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(displays) as pool:
        for kind, toolkit, asked, wrong, stale, done, said in pool.map(one, range(n)):
            row = table[kind]
            row["n"] += 1
            row["wrong"] += bool(wrong)
            row["stopped"] += stale is not None
            row["done"] += done and not wrong
            row["no reply"] += asked < 1
            bad += bool(wrong) or asked < 1
            if wrong or not (stale or done):
                print(f"  {kind}, {toolkit}: {wrong or 'neither done nor stopped'}: {said}", file=sys.stderr)
    print("| interference | runs | stopped | done, rightly | on the wrong thing |\n|---|---|---|---|---|")
    for kind in KINDS:
        r = table[kind]
        print(f"| {kind} | {r['n']} | {r['stopped']} | {r['done']} | {r['wrong']} |")
    print(f"| all | {n} | {sum(r['stopped'] for r in table.values())} | {sum(r['done'] for r in table.values())} | "
          f"{sum(r['wrong'] for r in table.values())} |")
    return bad


# ---- quiet steps -----------------------------------------------------------------------------------------------------


def programs(folder):
    page = f"{folder}/page.html"
    with open(page, "w") as f:
        f.write(PAGE)
    with open(f"{folder}/text.txt", "w") as f:
        f.write("\n".join(f"line {i} of a text" for i in range(40)))
    firefox = ["firefox", "--no-remote", "--profile", f"{folder}/ff", "file://" + page]
    chromium = ["chromium", "--no-sandbox", "--no-first-run", f"--user-data-dir={folder}/ch", "--disable-gpu",
                "--password-store=basic", "--window-size=900,700", "file://" + page]
    own = lambda kind: APP + [kind, f"{folder}/{kind}.log"]
    return {
        "GTK 3 (gtk3-widget-factory)": (["gtk3-widget-factory"], 4, 60),
        "GTK 4 (clock, spinner, pulse)": (own("gtk4"), 2, 40),
        "Qt 5 (clock, progress)": (own("qt5"), 2, 5),
        "Qt 6 (clock, progress)": (own("qt6"), 2, 5),
        "Tk (clock, spinner)": (own("tk"), 2, 5),
        "xterm with vim": (["xterm", "-bc", "-e", "vim", f"{folder}/text.txt"], 2, 5),
        "Firefox (animations, clock)": (firefox, 10, 130),
        "Chromium (animations, clock)": (chromium, 6, 130),
        "LibreOffice Writer": (["soffice", "--writer", "--norestore", "--nologo", "--nofirststartwizard",
                                f"-env:UserInstallation=file://{folder}/lo"], 15, 220),
        "mousepad": (["mousepad", f"{folder}/text.txt"], 2, 60),
    }


def windows(place):
    """Returns x, y, w, h of the largest visible window."""
    best = None
    for w in place.xdotool("search", "--onlyvisible", "--name", ".").split():
        g = dict(line.split("=") for line in place.xdotool("getwindowgeometry", "--shell", w).split() if "=" in line)
        box = [int(g.get(k, 0)) for k in ("X", "Y", "WIDTH", "HEIGHT")]
        if box[2] < W and (best is None or box[2] * box[3] > best[2] * best[3]):
            best = box
    return best


def quiet_run(models, number, name, steps, seed, keep):
    rnd = random.Random(seed)
    place = Place(number)
    os.makedirs(place.dir + "/ff", exist_ok=True)
    with open(place.dir + "/ff/user.js", "w") as f: # no bar that moves the page after some seconds
        f.write('user_pref("datareporting.policy.dataSubmissionEnabled", false);\n'
                'user_pref("browser.aboutwelcome.enabled", false);\nuser_pref("termsofuse.bypassNotification", true);\n')
    try:
        argv, seconds, top = programs(place.dir)[name]
        place.start(argv, stdin=subprocess.PIPE if "observed_app" in " ".join(argv) else subprocess.DEVNULL)
        wait_until(lambda: windows(place), 60)
        time.sleep(seconds)
        asked = [0]

        def model(_):
            asked[0] += 1
            if asked[0] > steps:
                return reply("answer", content="Done.")
            x, y, w, h = windows(place) or [100, 100, 400, 300]
            time.sleep(rnd.uniform(0.5, 1.5))
            if rnd.random() < 0.25:
                return reply("write_desktop", content=rnd.choice(["a", "word ", "7"]))
            return click(min(W - 5, x + rnd.uniform(0.06, 0.94) * w), min(H - 5, y + top + rnd.random() * max(20, h - top - 30)))

        key = f"q{number}-{seed}"
        models.of[key] = model
        events = place.run(f"http://127.0.0.1:{models.server_address[1]}/{key}/v1", steps + 20, 20 * steps + 60)
        acted = [e for e in events if e.get("kind") == "exec"]
        if keep and any(e.get("kind") == "stale" for e in events):
            shutil.copytree(f"{place.dir}/runs", f"{keep}/{key}", dirs_exist_ok=True)
        return name, len(acted), [e for e in events if e.get("kind") == "stale"], [e for e in events if e["kind"] == "end"]
    finally:
        place.close()


def quiet(models, n, displays, first, seed, only, keep):
    names = [k for k in programs(tempfile.gettempdir()) if not only or only in k]
    part = 25  # steps of one run
    jobs = [(name, k) for k in range((n // len(names) + part - 1) // part) for name in names]
    steps, stops = collections.Counter(), collections.defaultdict(list)
    free = queue.Queue()
    for i in range(displays):
        free.put(first + i)

    def one(job):
        number = free.get()
        try:
            return quiet_run(models, number, job[0], part, seed + zlib.crc32(repr(job).encode()) % 100000, keep)
        except Exception as e:
            return job[0], 0, [], [str(e)]
        finally:
            free.put(number)

    with concurrent.futures.ThreadPoolExecutor(displays) as pool:
        for name, acted, stale, end in pool.map(one, jobs):
            steps[name] += acted
            stops[name] += stale
            print(f"  {name}: {acted} of {part} steps{'' if acted == part else f': {end}'}", file=sys.stderr, flush=True)
            for s in stale:
                print(f"  {name}, step {s.get('step')}: {s['reason']}: {s['text']}", file=sys.stderr)
    print("| program | steps | false stops |\n|---|---|---|")
    for name in names:
        print(f"| {name} | {steps[name]} | {len(stops[name])} |")
    total, false = sum(steps.values()), sum(map(len, stops.values()))
    print(f"| all | {total} | {false} |")
    return false * 1000 > 2 * total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["interfere", "quiet"])
    p.add_argument("n", type=int, nargs="?")
    p.add_argument("--displays", type=int, default=3)
    p.add_argument("--first", type=int, default=9400)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", help="of the quiet programs: those with this in their name")
    p.add_argument("--keep", metavar="DIR", help="copies the records of quiet runs with a stop there")
    o = p.parse_args()
    models = Models()
    if o.what == "interfere":
        return interfere(models, o.n or 200, o.displays, o.first, o.seed) > 0
    return quiet(models, o.n or 1000, o.displays, o.first, o.seed, o.only, o.keep)


if __name__ == "__main__":
    sys.exit(main())
