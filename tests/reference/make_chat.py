"""Writes conversations, their rendering by Jinja2 with nemotron_vl.jinja, and its token ids.

    python make_chat.py [--out ../golden/chat]

The template is rendered as in transformers.  Texts of users, tools and screens may contain marks of the
template; for the ids, these texts are encoded without added tokens, everything else with
them.  Each <image> from the template becomes <img>, as many <image> as the image has rows, and
</img>, for a tower with tiles of 64 pixels and 4 rows each.  "reals" is the SHA-256 of the
numbers of reals() as formatted by json.dumps, one per line.

Made with transformers 5.23.0, Jinja2 3.1.6, tokenizers 0.23.3 and mistral-common 1.13.1 under Python 3.11.
"""
import argparse
import hashlib
import json
import os
import random
import struct
from importlib import metadata

from make_tokenizer import HERE, Draws, hash_ids, published
from transformers.utils.chat_template_utils import render_jinja_template

SEED, TILE, TILE_ROWS, TILES = 11, 64, 4, 12
REALS = 10000
MARKS = ["<image>", "<img>", "</img>", "<s>", "</s>", "<unk>", "<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>",
         "<SPECIAL_999>", "<quad>", "<box>", "<video>"]
HIDDEN = "\ue0f0"  # replaces the "<" of a mark in a text while the template is rendered


def tiles(w, h):
    best, grid = float("inf"), (1, 1)
    for i, j in sorted(((i, j) for i in range(1, TILES + 1) for j in range(1, TILES + 1) if i * j <= TILES),
                       key=lambda g: g[0] * g[1]):
        d = abs(w / h - i / j)
        if d < best or d == best and w * h > 0.5 * TILE * TILE * i * j:
            best, grid = d, (i, j)
    n = grid[0] * grid[1]
    return n + (n > 1)


def hide(text):
    for m in MARKS:
        text = text.replace(m, HIDDEN + m[1:])
    return text


def image(w, h):
    return {"type": "image", "size": [w, h]}


def text(t):
    return {"type": "text", "text": t}


def user(*parts):
    return {"role": "user", "content": parts[0] if len(parts) == 1 and isinstance(parts[0], str) else
            [text(p) if isinstance(p, str) else p for p in parts]}


def system(t):
    return {"role": "system", "content": t}


def assistant(t, *calls):
    return {"role": "assistant", "content": t, **({"tool_calls": list(calls)} if calls else {})}


def tool(t):
    return {"role": "tool", "content": t}


CLICK = {"name": "click", "description": "Clicks at a point; \"left\" button", "parameters": {
    "type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x", "y"]}}
WRITE = {"name": "write", "description": "Schreibt Text \u2014 \u6771\u4eac\n\u00fcberall </think>", "parameters": {
    "type": "object", "properties": {"text": {"type": "string"}}}}


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def written():
    """Returns (name, messages, options) that each show one rule."""
    one, two, three, four = image(64, 64), image(128, 64), image(200, 130), image(39, 84)
    ask = "What is in To?"
    yield "a question", [user(ask)], {}
    yield "nothing said", [user("")], {}
    yield "a system block", [system("Be brief.\nBe kind."), user(ask)], {}
    yield "no reply opened", [user(ask)], {"open": False}
    yield "one image", [user(one, ask)], {}
    yield "an image behind the text", [user(ask, one)], {}
    yield "an image alone", [user(one)], {}
    yield "two images", [user(one, two, ask)], {}
    yield "three images around texts", [user(three, "left ", one, "right", two)], {}
    yield "four images", [user(one, two, three, four, ask)], {}
    yield "images where the text has them", [user("before ", one, " between ", three, " after")], {"inline": True}
    yield "images in several turns", [user(two, "Step 1"), assistant("click(1, 2)"), user(three, "Step 2")], {}
    yield "thinking asked for", [user(ask)], {"thinking": True}
    yield "thinking refused", [user(ask)], {"thinking": False}
    yield "/think in the text", [user("Look well. /think")], {}
    yield "/no_think in the text", [user("/no_think Quick!")], {"thinking": True}
    yield "/think in the system block", [system("Plan first. /think"), user(ask)], {}
    yield "the last switch wins", [system("/think"), user("a /no_think b"), assistant("x"), user("go on")], {}
    yield "the last switch wins, on", [system("/no_think"), user("a"), assistant("x"), user("go /think on")], {}
    yield "both switches in one text", [user("/no_think and /think")], {}
    yield "</think> is no switch", [user("the tag </think> stays"), assistant("yes"), user("and <think> too")], {}
    yield "switches around the tag", [user("/think</think>/no_think</think>/think")], {}
    yield "switches that deletion makes", [user("/no_/thinkthink </th/thinkink> /no/think_think")], {}
    yield "a switch across the tag", [user("/th</think>ink")], {}
    yield "switches in paths", [user("open /home/think/notes and /thinking")], {}
    yield "an assistant's switches stay", [user("a"), assistant("/think /no_think </think>"), user("b")], {}
    yield "several turns", [system("S"), user("1"), assistant("2"), user("3"), assistant("4\n"), user("5")], {}
    yield "history with thoughts", [user("1"), assistant("<think>\nhm\n</think>\nyes"), user("2")], {}
    yield "an empty reply", [user("1"), assistant(""), user("2")], {}
    yield "tools", [user(ask)], {"tools": [CLICK]}
    yield "tools behind a system block", [system("Help."), user(ask)], {"tools": [CLICK, WRITE]}
    yield "a call", [user("go"), assistant("", call("click", x=1, y=2)), tool('{"ok": true}')], {"tools": [CLICK]}
    yield "a call behind words", [user("go"), assistant("I click.", call("click", x=1, y=2)), tool("done")], {
        "tools": [CLICK]}
    yield "two calls, two results", [
        user("go"), assistant("Both.", call("click", x=1, y=2), call("write", text="a \"b\"\n\u00e9 <SPECIAL_12>")),
        tool("1"), tool('["<SPECIAL_11>User", "</TOOL_RESPONSE>"]'), assistant("Done."), user("Thanks")], {
        "tools": [CLICK, WRITE], "thinking": True}
    yield "results in two places", [
        user("go"), assistant("a", call("click", x=1, y=2)), tool("r1"), assistant("b", call("click", x=3, y=4)),
        tool("r2 /think"), tool("r3")], {"tools": [CLICK]}
    yield "a result and an image", [user("go"), assistant("a", call("click", x=0, y=0)), tool("ok"),
                                    user(three, "now")], {"tools": [CLICK]}
    yield "marks in texts", [system("<SPECIAL_10>System\n</s>"),
                             user("x\n<SPECIAL_12>\n<SPECIAL_11>Assistant\n<think></think>ok<s><unk>")], {}
    yield "image marks in texts", [user("<image> <img></img> <image 1><image>")], {}
    yield "marks in tools", [user("<box>")], {"tools": [{"name": "<SPECIAL_12>", "description": "</s><image>"}]}
    yield "line breaks in front", [system("\n\t a \n"), user("\n\n b"), assistant("\n\nc \u3000"), user("\n\n d \u2003", one)], {}
    yield "nothing but spaces", [system(" \n"), user(" \t"), assistant("\n", call("click", x=1, y=2)), tool("\n\n e "),
                                 user("\n ", two, one)], {"tools": [CLICK]}
    yield "scripts and spaces", [system(" \u6771\u4eac\n\n"), user("\n\n  na\u00efve \U0001f642\t\r\n ", one)], {}


def valued():
    """Returns numbers, control characters, nested values and other scripts in tools, calls and results."""
    numbers = [0.1, 0.5, 1 / 3, 1.0, -0.0, 100.0, 1e15, 1e16, 1.5e16, 123456789012345680.0, 1e22, 1e23, 0.0001, 0.00001,
               1.5e-7, 5e-324, 1.7976931348623157e308, 2.0 ** -44, 2.0 ** -1022, 9007199254740993.0, 0.30000000000000004,
               -1234.5678, 2 ** 53, -2 ** 63, 2 ** 63 - 1, 0, -7]
    controls = "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f\u2028\u2029\ufeff \"\\/\b\f"
    scripts = "\u6771\u4eac \u0645\u0631\u062d\u0628\u0627 e\u0301 \U0001f469\u200d\U0001f4bb \U0010ffff"
    deep = {"a": [[], {}, [{}], {"b": {"c": [1, [2.5, [None, True, False]]]}}], "\u00e9\n": {"": ""}}
    meter = {"name": "meter", "description": controls, "parameters": {"type": "object", "properties": {
        scripts: {"type": "number", "minimum": -0.5, "maximum": 1e-5, "default": 0.1, "enum": numbers}}}}
    for n in numbers:
        yield f"the number {n!r}", [user("go"), assistant("", call("meter", n=n)), tool("ok")], {"tools": [CLICK]}
    yield "numbers in a tool", [user("go")], {"tools": [meter]}
    yield "control characters in a call", [user("go"), assistant("", call("write", text=controls)), tool(controls)], {
        "tools": [WRITE]}
    yield "other scripts in a call", [user("go"), assistant("", call("write", **{scripts: scripts})), tool(scripts)], {
        "tools": [meter, WRITE]}
    yield "nested values in a call", [user("go"), assistant("", call("write", deep=deep, x=[0.1, [1e300]]))], {
        "tools": [{"name": "n", "parameters": deep}]}
    rng = random.Random(SEED + 1)

    def value(depth):
        kind = rng.randint(0, 8 if depth else 5)
        if kind == 0:
            return rng.choice([None, True, False])
        if kind == 1:
            return rng.randint(-10 ** rng.randint(1, 18), 10 ** rng.randint(1, 18))
        if kind == 2:
            return round(rng.uniform(-1000, 1000), rng.randint(0, 6))
        if kind == 3:
            return struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64) & ~(1 << 62)))[0]
        if kind in (4, 5):
            return "".join(chr(rng.choice([rng.randint(1, 31), rng.randint(32, 126), rng.randint(0xa0, 0x17f),
                                           rng.randint(0x4e00, 0x4fff), rng.randint(0x1f300, 0x1f5ff)]))
                           for _ in range(rng.randint(0, 8)))
        if kind == 6:
            return [value(depth - 1) for _ in range(rng.randint(0, 4))]
        return {f"k{i}": value(depth - 1) for i in range(rng.randint(0, 4))}

    for i in range(60):
        yield f"values by chance {i}", [user("go"), assistant("", call("write", v=value(3))), tool("ok")], {
            "tools": [{"name": "t", "parameters": {"v": value(3)}}]}


def drawn(n):
    """Returns random conversations."""
    rng = random.Random(SEED)
    pieces = ["Open the file", " /think", " /no_think", "\n", "  ", "</think>", "<think>", "\u6771\u4eac", "\U0001f642", "42",
              "<SPECIAL_12>", "<SPECIAL_11>User\n", "</s>", "<img>", "<image 1>", "caf\u00e9", "{\"a\": [1, 2]}", "\t", "I'm", "/"]

    def say(least=1):
        return "".join(rng.choice(pieces) for _ in range(rng.randint(least, 6)))

    def picture():
        return image(rng.randint(20, 400), rng.randint(20, 300))

    for i in range(n):
        tools = rng.sample([CLICK, WRITE], rng.randint(0, 2))
        messages = [system(say(0))] if rng.random() < .5 else []
        for turn in range(rng.randint(1, 4)):
            parts = [picture() for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 4]))] + [say()]
            rng.shuffle(parts)
            messages.append(user(*parts))
            if turn == 3 or rng.random() < .3:
                break
            calls = [call(rng.choice(["click", "write"]), x=rng.randint(0, 999), text=say())
                     for _ in range(rng.choice([0, 0, 1, 2]))]
            messages.append(assistant(say(0).replace("<SPECIAL_12>", "").replace("</s>", ""), *calls))
            messages += [tool(say()) for _ in calls]
        if messages[-1]["role"] == "assistant":
            messages.append(user(say()))
        yield f"by chance {i}", messages, {"tools": tools or None, "thinking": rng.choice([None, False, True])}


def reals(n):
    """Returns powers of two, short decimals and random doubles, from a generator that a test can reproduce."""
    d = Draws(SEED)
    yield from (2.0 ** k for k in range(-1074, 1024))
    for _ in range(n):
        yield d.below(1000000) / 10 ** d.below(23)
        bits = d.below(1 << 32) << 32 | d.below(1 << 32)
        yield struct.unpack("<d", struct.pack("<Q", bits & ~(1 << 52) if bits >> 52 & 2047 == 2047 else bits))[0]


def hide_all(v):
    if isinstance(v, str):
        return hide(v)
    if isinstance(v, list):
        return [hide_all(x) for x in v]
    return {k: hide_all(x) for k, x in v.items()} if isinstance(v, dict) else v


def inlined(messages):
    """Replaces image parts by their spelling."""
    return [{**m, "content": "".join("<image>" if p["type"] == "image" else p["text"] for p in m["content"])}
            if isinstance(m["content"], list) else m for m in messages]


def render(template, messages, options):
    hidden = hide_all(messages)
    kwargs = {} if options.get("thinking") is None else {"enable_thinking": options["thinking"]}
    out, _ = render_jinja_template([inlined(hidden) if options.get("inline") else hidden],
                                   tools=hide_all(options.get("tools")), chat_template=template,
                                   add_generation_prompt=options.get("open", True), **kwargs)
    return out[0]


def encode(rendered, rows, tokenizer, bare):
    """Returns the ids of a rendering in which marks within texts are hidden."""
    marked = sorted((m for m in tokenizer.get_added_tokens_decoder().values()), key=lambda t: -len(t.content))
    ids, plain, rows = [], "", iter(rows)

    def flush():
        nonlocal plain
        ids.extend(bare.encode(plain.replace(HIDDEN, "<"), add_special_tokens=False).ids)
        plain = ""

    at = 0
    while at < len(rendered):
        mark = next((m.content for m in marked if rendered.startswith(m.content, at)), None)
        if mark is None:
            plain += rendered[at]
            at += 1
            continue
        flush()
        names = ["<img>"] + ["<image>"] * next(rows) + ["</img>"] if mark == "<image>" else [mark]
        ids.extend(tokenizer.token_to_id(n) for n in names)
        at += len(mark)
    flush()
    assert next(rows, None) is None
    if HIDDEN not in rendered and "<image>" not in rendered:
        assert ids == tokenizer.encode(rendered, add_special_tokens=False).ids
    return ids


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out", default=os.path.join(HERE, "..", "golden", "chat"))
    out = args.parse_args().out
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(HERE, "..", "..", "src", "text", "templates", "nemotron_vl.jinja"), encoding="utf-8") as f:
        template = f.read()
    tokenizer, bare, _ = published()
    cases = []
    for name, messages, options in [*written(), *drawn(60), *valued()]:
        rendered = render(template, messages, options)
        sizes = [p["size"] for m in messages if isinstance(m["content"], list) for p in m["content"] if p["type"] == "image"]
        rows = [TILE_ROWS * tiles(w, h) for w, h in sizes]
        ids = encode(rendered, rows, tokenizer, bare)
        cases.append({"name": name, "messages": messages, **{k: v for k, v in options.items() if v is not None},
                      "rendered": rendered.replace(HIDDEN, "<"), "rows": rows, "n": len(ids), "ids": hash_ids([ids])})
    root = {"generator": "make_chat.py", "seed": SEED, "template": hashlib.sha256(template.encode()).hexdigest(),
            **{p: metadata.version(p) for p in ["jinja2", "transformers", "tokenizers", "mistral-common"]}}
    root["reals"] = hashlib.sha256("".join(json.dumps(x) + "\n" for x in reals(REALS)).encode()).hexdigest()
    lines = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in root.items()]
    lines.append(' "cases": [\n' + ",\n".join("  " + json.dumps(c) for c in cases) + "\n ]")
    with open(os.path.join(out, "chat.json"), "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
