#!/usr/bin/env python3
"""Generates replies of a real model to the prompts of every built-in dialect, for tests/cases/replies (see real_replies.py).

    make_replies.py PROMPTS URL NAME OUT.jsonl [--minutes M] [--rounds R] [--samples S] [--shift N]

PROMPTS is the output of "build/release/helpers/replies prompts".  URL is a server with OpenAI's chat protocol that
runs the model, for example http://127.0.0.1:8717/v1 of `holorun serve -m MODEL.gguf`, or llama.cpp; $OPENAI_API_KEY is
its token.  A conversation has the system prompt of the program, the task, earlier turns in the dialect's own form,
and a list of the visible elements instead of the screenshot.  Each line of OUT is one reply; conversations that are
already in OUT are skipped.
"""

import argparse
import json
import os
import re
import time
import urllib.request
import zlib
from concurrent.futures import ThreadPoolExecutor

from replies_tasks import SCREENS, TASKS

TEMPERATURES = (0, 0.3, 0.6, 0.9, 1.2)
HEAVY = ("holo3", "holo31")  # system prompts of about 4,000 tokens: every third round, last
NORM1000 = ("holo3", "holo1", "uitars", "holo31", "qwen", "gemini")
DATE = "Monday, March 02, 2026 at 09:30 AM UTC"
XML_FORMAT = """

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within \
<tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell \
the user about function calls
</IMPORTANT>"""
HERMES_HEAD = """

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
HERMES_TAIL = """
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


def place(d, x, y):
    """Returns a position in thousandths as numbers of the dialect's coordinate space."""
    if d["name"] in NORM1000:
        return x, y
    if d["name"] == "pyautogui":
        return x / 1000, y / 1000
    size = re.search(r"(\d{3,4}) ?x ?(\d{3,4})", d["system"])
    w, h = (int(size[1]), int(size[2])) if size else (1280, 800)
    return x * w // 1000, y * h // 1000


def pocket_place(x, y):
    """Returns a position in the embedded model's form: cells of 16 pixels, and eighths, of an image of 1024 x 640."""
    px, py = x * 1024 // 1000, y * 640 // 1000
    return "".join(f"<{v // 16}><.{v % 16 // 2}>" for v in (px, py))


def screen_text(d, screen):
    """Returns the description that replaces the screenshot."""
    title, elements = SCREENS[screen]
    lines = [f"Window: {title}"]
    for kind, label, x, y in elements:
        at = pocket_place(x, y) if d["name"] == "pocket-wide" else "({}, {})".format(*place(d, x, y))
        lines.append(f"{kind} \"{label}\" at {at}")
    return "\n".join(lines)


def xml_call(tool, args):
    """Returns a call in the XML form of Qwen3.5."""
    return "<tool_call>\n<function=%s>\n%s</function>\n</tool_call>" % (
        tool,
        "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in args.items()),
    )


def call(d, screen, act):
    """Returns an earlier action as a reply of the dialect: (its text, the name of its tool)."""
    name, verb, what = d["name"], act[0], act[1]
    x, y = next((place(d, ex, ey) for _, label, ex, ey in SCREENS[screen][1] if label == what), (0, 0))
    js = lambda o: json.dumps(o, ensure_ascii=False)
    keys = what.split("+")
    if name in ("holo3", "holo31"):
        tool, args = {
            "click": ("click_desktop", {"element": what, "x": x, "y": y}),
            "type": ("write_desktop", {"content": what}),
            "key": ("hotkey_desktop", {"keys": keys}),
        }[verb]
        if name == "holo31":
            return xml_call(tool, {k: js(v) if isinstance(v, list) else v for k, v in args.items()}), tool
        return js({"note": None, "thought": "Next step of the task.", "tool_call": {"tool_name": tool, **args}}), tool
    if name in ("holo1", "holo15"):
        tool, args = {
            "click": ("click_element", {"element": what, "x": x, "y": y}),
            "type": ("write_element_abs", {"content": what, "element": "the field", "x": 300, "y": 300}),
            "key": ("wait", {"seconds": 2}),
        }[verb]
        return js({"note": None, "thought": "Next step of the task.", "action": {"action": tool, **args}}), tool
    if name in ("uitars", "uitars15"):
        text = {
            "click": f"click(start_box='({x},{y})')",
            "type": "type(content='%s')" % what.replace("'", "\\'"),
            "key": "hotkey(key='%s')" % " ".join(keys),
        }[verb]
        return f"Thought: This is the next step.\nAction: {text}", text.split("(")[0]
    if name == "anthropic-computer":
        return (
            js(
                {
                    "click": {"action": "left_click", "coordinate": [x, y]},
                    "type": {"action": "type", "text": what},
                    "key": {"action": "key", "text": what},
                }[verb]
            ),
            verb,
        )
    if name == "openai-computer":
        return (
            js(
                {
                    "click": {"type": "click", "button": "left", "x": x, "y": y},
                    "type": {"type": "type", "text": what},
                    "key": {"type": "keypress", "keys": keys},
                }[verb]
            ),
            verb,
        )
    if name == "pyautogui":
        code = {
            "click": f"pyautogui.click(x={x}, y={y})",
            "type": "pyautogui.write(%s)" % js(what),
            "key": "pyautogui.hotkey(%s)" % ", ".join(js(k) for k in keys),
        }[verb]
        return f"## Action:\nNext step of the task.\n## Code:\n```python\n{code}\n```", verb
    if name == "gemini":
        args = {
            "click": ("click_at", {"x": x, "y": y}),
            "type": ("type_text_at", {"x": 300, "y": 300, "text": what}),
            "key": ("key_combination", {"keys": what}),
        }[verb]
        return "<tool_call>\n%s\n</tool_call>" % js({"name": args[0], "arguments": args[1]}), args[0]
    if name == "pocket-wide":
        ex, ey = next(((ex, ey) for _, label, ex, ey in SCREENS[screen][1] if label == what), (300, 300))
        return {
            "click": f"next<click>{what[:40]}<at>{pocket_place(ex, ey)}",
            "type": f"text<append>field<at>{pocket_place(ex, ey)}{what}",
            "key": f"keys<key>{what}",
        }[verb], verb
    args = {
        "click": {"action": "left_click", "coordinate": [x, y]},
        "type": {"action": "type", "text": what},
        "key": {"action": "key", "keys": keys},
    }[verb]
    return (
        "Action: Next step of the task.\n<tool_call>\n%s\n</tool_call>"
        % js({"name": "computer_use", "arguments": args}),
        "computer_use",
    )


def system_text(d, task):
    """Returns the system prompt as filled by the program, with the tools if the dialect leaves them to the server."""
    s = re.sub(r"[A-Z][a-z]+day, [A-Z][a-z]+ \d\d, \d{4} at \d\d:\d\d [AP]M UTC", DATE, d["system"]).replace(
        "@TASK@", task
    )
    if d["name"] == "holo31":
        return (
            "# Tools\n\nYou have access to the following functions:\n\n<tools>\n"
            + d["schema"]
            + "\n</tools>"
            + XML_FORMAT
            + "\n\n"
            + s
        )
    if d["name"] == "gemini":
        return s + HERMES_HEAD + d["schema"] + HERMES_TAIL
    if d["name"] in ("anthropic-computer", "openai-computer"):
        return s + "\n\nActions, each one JSON object:\n" + d["tools"]
    return s


POCKET_TURNS = [("files", ("click", "fotos")), ("files", ("key", "ctrl+c")), ("compose", ("type", "Ann"))]


def messages(d, task):
    """Returns the conversation up to the model's turn."""
    _, screen, text, earlier = task
    see = d["observation_open"] + screen_text(d, screen) + d["observation_close"]
    hidden = d["observation_open"] + d["placeholder"] + d["observation_close"]
    out = []
    system = system_text(d, text)
    if system:
        out.append(("system", system))
    if d["name"] == "pocket-wide":  # without a system prompt: three turns of other tasks show the form
        for told, (other, act) in zip(("Open fotos", "Copy it", "Write Ann into To"), POCKET_TURNS):
            out += [("user", told + "\n" + screen_text(d, other)), ("assistant", call(d, other, act)[0])]
    out.append(("user", d["task_open"] + text + d["task_close"] + (hidden if earlier else see)))
    for i, act in enumerate(earlier):
        reply, tool = call(d, screen, act)
        told = d["tool_output"].replace("{tool}", tool).replace("{result}", "ok")
        out += [("assistant", reply), ("user", told + (see if i + 1 == len(earlier) else hidden))]
    return [{"role": role, "content": content} for role, content in out]


ORDER = (
    "pocket-wide",
    "uitars",
    "pyautogui",
    "qwen",
    "gemini",
    "holo1",
    "uitars15",
    "openai-computer",
    "anthropic-computer",
    "fara",
    "qwen25",
    "holo15",
) + HEAVY


def plan(rounds, shift):
    """Yields (dialect, task, temperature): a task of each dialect per round, one dialect of each syntax first.

    Prefill and small batches are expensive, so a prompt gets one temperature and many samples; the temperatures
    alternate, and every third prompt also gets a greedy reply.  Long system prompts are used in every third round.
    """
    for r in range(rounds):
        for k in range(shift if not r else 0, len(ORDER)):
            if ORDER[k] in HEAVY and r % 3:
                continue
            task = TASKS[(r * 7 + k * 11 + 3 * shift) % len(TASKS)]
            yield ORDER[k], task, TEMPERATURES[1 + (k + r + shift) % (len(TEMPERATURES) - 1)]
            if (k + r) % 3 == 0:
                yield ORDER[k], task, 0


def reply(url, model, conversation, t, seed, tokens):
    """Returns (text, finish reason) of one sampled reply."""
    body = {"model": model, "messages": conversation, "temperature": t, "top_p": 1, "top_k": 0, "min_p": 0,
            "seed": seed, "max_tokens": tokens}
    request = urllib.request.Request(url + "/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json",
                                      "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none")})
    with urllib.request.urlopen(request, timeout=3600) as r:
        choice = json.load(r)["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


def main():
    """Generates until the plan is completed or the time is over."""
    a = argparse.ArgumentParser()
    a.add_argument("prompts"), a.add_argument("url"), a.add_argument("name"), a.add_argument("out")
    a.add_argument("--minutes", type=float, default=1e9), a.add_argument("--rounds", type=int, default=15)
    a.add_argument("--samples", type=int, default=12, help="replies of a prompt at a temperature above 0")
    a.add_argument(
        "--shift", type=int, default=0, help="begins with that dialect of ORDER, other tasks and temperatures"
    )
    a = a.parse_args()
    with open(a.prompts, encoding="utf-8") as f:
        dialects = {d["name"]: d for d in map(json.loads, f)}
    have = set()
    if os.path.exists(a.out):
        with open(a.out, encoding="utf-8") as f:
            have = {(o["dialect"], o["task"], o["t"]) for o in map(json.loads, f)}
    end = time.time() + 60 * a.minutes
    with open(a.out, "a", encoding="utf-8") as out, ThreadPoolExecutor(a.samples) as pool:
        for name, task, t in plan(a.rounds, a.shift):
            if time.time() > end:
                return
            if name not in dialects or (name, task[0], t) in have:
                continue
            have.add((name, task[0], t))
            tokens = 90 if name.startswith(("holo", "qwen", "fara", "gemini")) else 48
            seed = zlib.crc32(f"{a.name} {name} {task[0]} {t}".encode()) & 0x3FFFFFFF
            talk = messages(dialects[name], task)
            first = reply(a.url, a.name, talk, t, seed, tokens)  # alone, so that the others share its prompt
            jobs = [pool.submit(reply, a.url, a.name, talk, t, seed + i, tokens) for i in range(1, a.samples if t else 1)]
            for i, (text, reason) in enumerate([first] + [j.result() for j in jobs]):
                if name == "pocket-wide":  # its replies are one line
                    text = text.split("\n")[0]
                line = {"model": a.name, "dialect": name, "task": task[0], "t": t, "seed": seed + i, "i": i}
                out.write(json.dumps({**line, "finish": reason, "reply": text}, ensure_ascii=False) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
