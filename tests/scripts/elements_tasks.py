#!/usr/bin/env python3
"""Completes tasks in real programs through `holorun mcp` with the tools snapshot, find and act by ref alone: no picture is
requested, and no place is sent. Rules stand in for a model: they pick lines of the text. Programs judge: the output of zenity
and yad, exit codes, saved files, the clipboard.

    elements_tasks.py [--raw] [--md] [--folder DIR] [TASK ...]

Uses the Python package `mcp` (2.x) if it is installed; --raw: JSON lines, without the package. --md prints the table of
tests/results/elements-client.md.
"""
import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOLORUN = os.path.join(ROOT, "holorun")
PATIENCE_S = 15
CLIENT_INFO = {"name": "elements_tasks", "version": "1"}


WATCH = "(while sleep 0.3; do xclip -selection clipboard -o >clipboard 2>/dev/null; done) &\n"


class Failed(Exception):
    pass


# ---- clients

class Raw:
    """Speaks JSON-RPC by lines."""

    def __init__(self, process):
        self.process, self.id = process, 0

    async def request(self, method, params):
        self.id += 1
        self.send({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        while True:
            line = await asyncio.wait_for(self.process.stdout.readline(), 60)
            if not line:
                raise Failed("the server has ended")
            message = json.loads(line)
            if message.get("id") == self.id:
                return message["result"]

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def call(self, tool, arguments):
        result = await self.request("tools/call", {"name": tool, "arguments": arguments})
        return [c["text"] for c in result["content"] if c["type"] == "text"], result["isError"], len(result["content"])


@contextlib.asynccontextmanager
async def raw_client(words):
    process = await asyncio.create_subprocess_exec(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                   stderr=subprocess.DEVNULL, limit=1 << 24)
    client = Raw(process)
    await client.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT_INFO})
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    try:
        yield client
    finally:
        process.stdin.close()
        await process.wait()


class Official:
    def __init__(self, client):
        self.client = client

    async def call(self, tool, arguments):
        r = await self.client.call_tool(tool, arguments)
        return [c.text for c in r.content if c.type == "text"], r.is_error, len(r.content)


@contextlib.asynccontextmanager
async def official_client(words):
    from mcp import Client, StdioServerParameters
    params = StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
    async with Client(params, mode="legacy") as client:
        yield Official(client)


# ---- a person who reads lines

def in_front(text):
    """Returns the (ref, rest) of the lines with a ref, those in the active window first."""
    lines, active = [], False
    for line in text.split("\n"):
        active = line.endswith(" active") if line.startswith("window ") else active
        found = re.match(r" *(e\d+) (.*)", line)
        if found:
            lines.append((not active, len(lines), found[1], found[2]))
    return [(ref, rest) for _, _, ref, rest in sorted(lines)]


class Hand:
    def __init__(self, client, trace):
        self.client, self.trace, self.calls, self.bytes = client, trace, 0, 0

    async def ask(self, tool, expect_error=False, **arguments):
        text, is_error, parts = await self.client.call(tool, arguments)
        self.calls += 1
        self.bytes += len("".join(text).encode())
        self.trace.write(f"\n> {tool} {json.dumps(arguments)}\n{''.join(text)}")
        assert parts == 1, "a picture was sent"
        if text[0].startswith('{"run_id"') and '"status":"asking"' in text[0] and self.may_answer:
            return await self.ask("run_answer", run_id=json.loads(text[0])["run_id"], allow=True)
        if is_error != expect_error:
            raise Failed(f"{tool} {arguments}: {text[0][:300]}")
        return text[0]

    async def find(self, words, role=None, wait=PATIENCE_S):
        """Returns the ref of the only element with these words in its name, waiting until it is there."""
        end = time.time() + wait
        while True:
            text = await self.ask("find", words=words, **({"role": role} if role else {}))
            lines = in_front(text)
            exact = [r for r, rest in lines if re.match(r'[^"]*"%s[ :.…]*"' % re.escape(words), rest)]
            wanted = exact or [r for r, rest in lines if words.lower() in rest.lower()]
            if wanted:
                return wanted[0]
            if time.time() > end:
                raise Failed(f"no element '{words}': {text[:300]}")
            await asyncio.sleep(0.3)

    async def line(self, pattern, wait=PATIENCE_S):
        """Returns the ref of the first line of a snapshot that fits a pattern."""
        end = time.time() + wait
        while True:
            text = await self.ask("snapshot")
            found = re.search(r'^ *(e\d+) (?:%s)' % pattern, text, re.M)
            if found:
                return found[1]
            if time.time() > end:
                raise Failed(f"no line {pattern}: {text[:600]}")
            await asyncio.sleep(0.3)

    async def do(self, action, words, value=None, role=None):
        more = {} if value is None else {"value": value}
        return await self.ask("act", action=action, ref=await self.find(words, role), **more)

    async def menu(self, *path):
        for name in path:
            await self.ask("act", action="press", ref=await self.line('(?:menu|item|check item|radio item) "%s *"' % re.escape(name)))


# ---- tasks: the program, its rules, and the result that must be true afterwards

TASKS = {}


def task(program, prints=None, code=0, file=None, contains=None, start=None, more=()):
    def add(f):
        TASKS[f.__name__.replace("_", "-")] = dict(program=program, act=f, prints=prints, code=code, file=file,
                                                   contains=contains, start=start, more=list(more))
        return f
    return add


@task("zenity --entry --text=Name", prints="Ana Lima")
async def zenity_entry(h):
    await h.ask("act", action="fill", ref=await h.line("field"), value="Ana Lima")
    await h.do("press", "OK")


@task("zenity --forms --add-entry=Name --add-entry=City --add-combo=Size --combo-values='Small|Medium|Large'",
      prints="Eva Braun-Kiesl|Graz|Large")
async def zenity_form(h):
    await h.do("fill", "Name", "Eva Braun-Kiesl", "field")
    await h.do("fill", "City", "Graz", "field")
    await h.ask("act", action="choose", ref=await h.line('list'), value="Large")
    await h.do("press", "OK")


@task("zenity --list --checklist --column=Pick --column=Fruit FALSE Apple TRUE Pear FALSE Plum", prints="Apple|Plum")
async def zenity_checklist(h):
    await h.do("tick", "Apple")
    await h.do("untick", "Pear")
    await h.do("tick", "Plum")
    await h.do("press", "OK")


@task("zenity --question --text=Sure", code=1)
async def zenity_question(h):
    await h.do("press", "No")


@task("zenity --list --column=City Rome Graz Oslo", prints="Oslo")
async def zenity_list(h):
    await h.do("press", "Oslo")
    await h.do("press", "OK")


@task("zenity --password", prints="s3cret pass", more=["--confirm", "caller"])
async def zenity_password(h):
    """The rules want a yes for a password: the client gives it with run_answer, as --confirm caller allows."""
    text = await h.ask("act", action="fill", ref=await h.line("password"), value="s3cret pass")
    assert text.startswith("filled password") and "s3cret" not in text, text
    await h.do("press", "OK")


@task("zenity --text-info --editable", prints="first line\nsecond line")
async def zenity_text(h):
    await h.ask("act", action="fill", ref=await h.line("field"), value="first line\nsecond line")
    await h.do("press", "OK")


@task("yad --form --field=Name --field=Gift:CHK --field=Size:CB '' FALSE 'Small!Medium!Large'", prints="Ana|TRUE|Medium|")
async def yad_form(h):
    await h.do("fill", "Name", "Ana", "field")
    await h.do("tick", "Gift")
    await h.ask("act", action="choose", ref=await h.line("list"), value="Medium")
    await h.do("press", "OK")


@task("yad --text-info --editable", prints="to be continued")
async def yad_text(h):
    await h.ask("act", action="fill", ref=await h.line("field"), value="to be continued")
    await h.do("press", "OK")


@task("yad --list --checklist --column=Pick --column=Meal FALSE Soup FALSE Rice TRUE Fish", prints="TRUE|Rice|\nTRUE|Fish|")
async def yad_checklist(h):
    await h.do("tick", "Rice")
    await h.do("press", "OK")


@task("yad --text=Delete --button=Keep:3 --button=Remove:4", code=3)
async def yad_buttons(h):
    await h.do("press", "Keep")


@task("mousepad", file="new.txt", contains="from a text\n")
async def mousepad_save_as(h):
    await h.ask("act", action="fill", ref=await h.line("field"), value="from a text\n")
    await h.menu("File", "Save As...")
    await h.ask("act", action="fill", ref=await h.find("Name", "field"), value=h.folder + "/new.txt")
    await h.do("press", "Save", role="button")


@task("mousepad old.txt", start="one two one\n", file="old.txt", contains="six two six\n", more=["--confirm", "caller"])
async def mousepad_replace(h):
    await h.line("field")
    await h.menu("Search", "Find and Replace...")
    await h.do("fill", "Search for", "one")
    await h.do("fill", "Replace with", "six")
    await h.do("tick", "Replace all in")
    await h.do("press", "Replace", role="button")
    await h.do("press", "Close", role="button")
    await h.menu("File", "Save")


@task("l3afpad old.txt", start="before\n", file="old.txt", contains="after\n")
async def l3afpad_save(h):
    await h.ask("act", action="fill", ref=await h.line("field"), value="after\n")
    await h.menu("File", "Save")


@task("l3afpad", file="new.txt", contains="a new file\n")
async def l3afpad_save_as(h):
    await h.ask("act", action="fill", ref=await h.line("field"), value="a new file\n")
    await h.menu("File", "Save As...")
    await h.ask("act", action="fill", ref=await h.find("Name", "field"), value=h.folder + "/new.txt")
    await h.do("press", "Save", role="button")


@task("featherpad --standalone old.txt", start="before\n", file="old.txt", contains="changed by refs\n")
async def featherpad_save(h):
    await h.ask("act", action="fill", ref=await h.line('field[^"]*"?[^"]*"? = "before'), value="changed by refs\n")
    await h.menu("File", "Save")


@task("featherpad --standalone", file="new.txt", contains="from featherpad\n")
async def featherpad_save_as(h):
    await h.ask("act", action="fill", ref=await h.line("field"), value="from featherpad\n")
    await h.menu("File", "Save As")
    await h.do("fill", "File name", h.folder + "/new.txt", "field")
    await h.do("press", "Save", role="button")


@task("galculator", file="clipboard", contains="84")
async def galculator_product(h):
    for key in ("1", "2", "*", "7", "="):
        await h.do("press", key)
    await h.menu("Edit", "Copy Display Value")


@task("galculator", file="clipboard", contains="-4.5")
async def galculator_difference(h):
    for key in ("5", "-", "9", ".", "5", "="):
        await h.do("press", key)
    await h.menu("Edit", "Copy Display Value")


@task("zenity --forms --add-entry=Name --add-password=Code --add-calendar=Day --forms-date-format=%Y",
      code=1, prints="")
async def zenity_cancelled(h):
    """A ref of a closed dialog is refused in one line; nothing is pressed."""
    await h.do("fill", "Name", "nobody", "field")
    ok = await h.find("OK", "button")
    text = await h.do("press", "Cancel", role="button")
    assert "closed" in text, text
    text = await h.ask("act", expect_error=True, action="press", ref=ok)
    assert "is gone; call snapshot again" in text and "\n" not in text.strip(), text


# ---- one task

def judge(t, folder):
    """Waits until the program's output is right. Returns the difference, or ""."""
    end, wrong = time.time() + PATIENCE_S, ""
    while time.time() < end:
        wrong = look(t, folder)
        if not wrong:
            return ""
        time.sleep(0.1)
    return wrong


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return None


def look(t, folder):
    if t["file"]:
        text = read(f"{folder}/{t['file']}")
        return "" if text is not None and t["contains"].strip() == text.strip() else f"{t['file']}: {text!r}"
    code, out = read(folder + "/code"), read(folder + "/out") or ""
    if code is None or code.strip() != str(t["code"]):
        return f"exit code {code and code.strip()}, expected {t['code']}; printed {out!r}"
    return "" if t["prints"] is None or out.strip("\n") == t["prints"] else f"printed {out!r}"


async def run(name, t, connect, trace):
    folder = tempfile.mkdtemp(prefix="holorun-elements-")
    if t["start"] is not None:
        with open(folder + "/" + t["program"].split()[-1], "w") as f:
            f.write(t["start"])
    script = folder + "/start.sh"
    with open(script, "w") as f:
        f.write(f"cd {folder}\n{WATCH if t['file'] == 'clipboard' else ''}{t['program']} >out 2>err\necho $? >code\n")
    words = [HOLORUN, "mcp", "--quiet", "--on", "desk:1000x700", "--start", "sh " + script, "--runs", folder + "/runs",
             "--no-report", *t["more"]]
    begin = time.time()
    async with connect(words) as client:
        hand = Hand(client, trace)
        hand.folder, hand.may_answer = folder, "caller" in t["more"]
        wrong = ""
        try:
            await t["act"](hand)
            wrong = await asyncio.to_thread(judge, t, folder)
        except (Failed, AssertionError, OSError) as e:
            wrong = f"{type(e).__name__}: {e}"
    subprocess.run(["rm", "-rf", folder], check=False)
    return wrong, time.time() - begin, hand.calls, hand.bytes


async def main():
    arguments = sys.argv[1:]
    raw, markdown = "--raw" in arguments, "--md" in arguments
    wanted = [a for a in arguments if not a.startswith("--")] or list(TASKS)
    if not raw:
        try:
            import mcp  # noqa: F401
        except ImportError:
            raw = True
    passed = 0
    with open(os.environ.get("TRACE", "/dev/null"), "w") as trace:
        print(f"client: {'raw JSON lines' if raw else 'package mcp'}")
        if markdown:
            print("\n| task | result | seconds | calls | bytes read |\n|---|---|---|---|---|")
        for name in wanted:
            trace.write(f"\n==== {name}\n")
            wrong, seconds, calls, size = await run(name, TASKS[name], raw_client if raw else official_client, trace)
            passed += not wrong
            row = (name, wrong or "passed", f"{seconds:.1f}", calls, size)
            print("| %s | %s | %s | %s | %s |" % row if markdown else "%-24s %-8s %5s s %3d calls %6d bytes" % row, flush=True)
        print(f"\n{passed} of {len(wanted)} passed")
    return passed < len(wanted)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
