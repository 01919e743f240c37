"""Writes conversations, and their rendering by Jinja2 with qwen.jinja.

    python make_chat_qwen.py [--out ../golden/chat] [--published FILE]

The template is rendered as in transformers.  Texts of users, tools and screens may contain marks of the
template, and replies may contain those of turns and images: "marks" counts those written by the template and
those of reasoning and calls in replies; only these may become added tokens.

--published: a published chat_template.jinja of Qwen3.5, which must give the same rendering except for the sentences
around the tools.  Made with transformers 5.23.0 and Jinja2 3.1.6.
"""
import argparse
import json
import os
import random
from importlib import metadata

from transformers.utils.chat_template_utils import render_jinja_template

HERE = os.path.dirname(os.path.abspath(__file__))
SEED, DRAWN, TURN = 15, 320, "<|im_end|>\n"
NAMES = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<tool_call>",
         "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
HIDDEN = "\ue0f0"  # replaces the "<" of a mark that is only text
IMAGE = {"type": "image", "size": [32, 32]}
TOOLS = [{"type": "function", "function": {"name": "click", "description": "Clicks at a point; \"left\" \u2014 \u6771\u4eac <b> & c", "parameters": {
    "type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "maximum": 1000.0}}, "required": ["x", "y"]}}},
         {"type": "function", "function": {"name": "write", "parameters": {"type": "object", "properties": {}}}}]
SPACES = ["", " ", "\n", "\n\n", "\t ", "\u3000", "\u00a0\n", "\u2003"]
WORDS = ["Open the file", "42", "\u6771\u4eac", "\U0001f642", "e\u0301", "{\"a\": [1]}", "I'm", "a  b", "line\nline", "</b>", "Done.", "<|im_end", "%}"]
VALUES = ["text", "two\nlines", "", " padded ", 3, -1, 0.5, 1e22, 1e-7, True, False, None, [1, "a", {"k": None}], {"a": {"\u00e9": [True]}}, [], {}]


def say(rng, marks=(), most=4):
    parts = [rng.choice(SPACES)] + [rng.choice(WORDS + [m for m in marks if rng.random() < .3]) + rng.choice(SPACES)
                                    for _ in range(rng.randint(0, most))]
    return "".join(parts)


def user(rng):
    parts = [dict(IMAGE) for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3, 4]))]
    parts += [{"type": "text", "text": say(rng, NAMES)} for _ in range(rng.randint(1, 3))]
    rng.shuffle(parts)
    if rng.random() < .1:
        return {"role": "user", "content": rng.choice(SPACES) + "<tool_response>\n" + say(rng) + "\n</tool_response>" + rng.choice(SPACES)}
    return {"role": "user", "content": say(rng, NAMES) if rng.random() < .4 else parts}


def assistant(rng, calls):
    text, m = say(rng, ["<|im_start|>", "<|image_pad|>"]), {"role": "assistant"}
    if rng.random() < .4:
        m["reasoning_content"] = say(rng)
    elif rng.random() < .5:
        text = rng.choice(["<think>\n", "<think>", "", "\n<think>\n\n"]) + say(rng) + rng.choice(["\n</think>\n\n", "</think>", "</think>\n \n"]) + text
        if rng.random() < .1:
            text += "</think>" + say(rng)
    m["content"] = text
    if calls:
        m["tool_calls"] = [{"name": rng.choice(["click", "write"]),
                            "arguments": {f"p{k}": rng.choice(VALUES) for k in range(rng.randint(0, 3))}} for _ in range(calls)]
    return m


def conversations():
    rng = random.Random(SEED)
    for i in range(DRAWN):
        messages = [{"role": "system", "content": say(rng, NAMES)}] if rng.random() < .6 else []
        messages.append({"role": "user", "content": "Book a flight." + rng.choice(SPACES)} if rng.random() < .3 else user(rng))
        for _ in range(rng.randint(0, 4)):
            calls = rng.choice([0, 0, 1, 1, 2, 3])
            messages.append(assistant(rng, calls))
            if calls:
                messages += [{"role": "tool", "content": say(rng, NAMES)} for _ in range(calls)]
            if not calls or rng.random() < .3:
                messages.append(user(rng))
        yield {"name": f"drawn {i}", "messages": messages, "thinking": rng.random() < .5, "open": rng.random() < .9,
               **({"tools": TOOLS[:rng.randint(1, 2)]} if rng.random() < .5 else {})}


def hide(v, marks):
    if isinstance(v, str):
        for m in marks:
            v = v.replace(m, HIDDEN + m[1:])
        return v
    if isinstance(v, list):
        return [hide(x, marks) for x in v]
    return {k: hide(x, marks) for k, x in v.items()} if isinstance(v, dict) else v


def render(case, messages, template, **more):
    return render_jinja_template([messages], tools=case.get("tools"), chat_template=template, add_generation_prompt=case["open"],
                                 enable_thinking=case["thinking"], **more)[0][0]


def is_question(m):
    text = m["content"] if isinstance(m["content"], str) else "".join(p.get("text", "<image>") for p in m["content"])
    return m["role"] == "user" and not (text.strip().startswith("<tool_response>") and text.strip().endswith("</tool_response>"))


def without_tools(text):
    """Returns the rendering without the sentences around the tools."""
    if "<tools>" not in text.split(TURN)[0]:
        return text
    before, rest = text.split("<tools>", 1)
    tools, after = rest.split("</tools>", 1)
    for end in ("</IMPORTANT>", "</function>\n</tool_call>"):
        if end in after.split(TURN)[0] and "\n\n" in after[:4]:
            return tools + after.split(end, 1)[1]
    return text


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out", default=os.path.join(HERE, "..", "golden", "chat"))
    args.add_argument("--published")
    args = args.parse_args()
    with open(os.path.join(HERE, "..", "..", "src", "text", "templates", "qwen.jinja"), encoding="utf-8") as f:
        template = f.read()
    published = open(args.published, encoding="utf-8").read() if args.published else None
    cases = []
    for case in conversations():
        if not any(is_question(m) for m in case["messages"]):
            continue
        if published:
            assert without_tools(render(case, case["messages"], published)) == without_tools(render(case, case["messages"], template)), case
        hidden = [hide(m, NAMES[:6] if m["role"] == "assistant" else NAMES) for m in case["messages"]]
        wrapped = 0
        for m, h in zip(case["messages"], hidden):
            if m["role"] == "user" and not is_question(m):  # the template tests for this mark
                h["content"] = h["content"].replace(HIDDEN + "tool_response>", "<tool_response>").replace(
                    HIDDEN + "/tool_response>", "</tool_response>")
                wrapped += 2
        text = render({**case, "tools": hide(case.get("tools"), NAMES)}, hidden, template)
        rendered = render(case, case["messages"], template)
        marks = sum(text.count(m) for m in NAMES) - wrapped
        json_text = render(case, case["messages"], template, json_values=True)
        cases.append({**case, "rendered": rendered, "marks": marks, **({"json": json_text} if json_text != rendered else {})})
    root = {"generator": "make_chat_qwen.py", "seed": SEED, **{p: metadata.version(p) for p in ["jinja2", "transformers"]}}
    with open(os.path.join(args.out, "qwen.json"), "w", encoding="utf-8") as f:
        f.write("{\n" + "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in root.items()) + ' "cases": [\n' +
                ",\n".join("  " + json.dumps(c) for c in cases) + "\n ]\n}\n")
    print(len(cases), "conversations")


if __name__ == "__main__":
    main()
