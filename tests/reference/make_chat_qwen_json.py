"""Writes conversations, and their rendering by Jinja2 with qwen_json.jinja: Qwen2.5-VL's and Qwen3-VL's layouts.

    python make_chat_qwen_json.py [--out ../golden/chat]

The conversations are those of make_chat_qwen.py, each in one of three forms: "plain" (Qwen3-VL-Instruct), "thinks"
(Qwen3-VL-Thinking, Holo2) and "greets" (Qwen2.5-VL).

--plain, --thinks, --greets FILE: published templates, which must give the same rendering except for the sentences around
the tools, which are taken from them; that of Qwen2.5-VL has no tools.  Made with transformers 5.23.0 and Jinja2 3.1.6.
"""
import argparse
import json
import os
from importlib import metadata

from make_chat_qwen import HERE, NAMES, SEED, conversations, hide, render

FORMS = ["plain", "thinks", "greets"]


def wrapped(m):
    text = m["content"] if isinstance(m["content"], str) else "".join(p.get("text", "<image>") for p in m["content"])
    return m["role"] == "user" and text.startswith("<tool_response>") and text.endswith("</tool_response>")


def sentences(published):
    """Returns the texts that a template writes before and after its list of tools."""
    case = {"tools": [{"name": "TOOL"}], "open": False, "thinking": False}
    text = render(case, [{"role": "user", "content": "x"}], published)
    before, after = text.split("<|im_end|>\n")[0].split('\n{"name": "TOOL"}')
    return {"before": before.removeprefix("<|im_start|>system\n"), "after": after}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out", default=os.path.join(HERE, "..", "golden", "chat"))
    for form in FORMS:
        args.add_argument("--" + form)
    args = args.parse_args()
    with open(os.path.join(HERE, "..", "..", "src", "text", "templates", "qwen_json.jinja"), encoding="utf-8") as f:
        template = f.read()
    cases, checked = [], dict.fromkeys(FORMS, 0)
    for i, case in enumerate(conversations()):
        form = FORMS[i % 3]
        how = {"thinks": form == "thinks", "greets": form == "greets"}
        case["thinking"] = form == "thinks"
        rendered = render(case, case["messages"], template, **how)
        bare = form == "greets" and (case.get("tools") or any(m["role"] == "tool" or m.get("tool_calls") for m in case["messages"]))
        if getattr(args, form) and not bare:
            with open(getattr(args, form), encoding="utf-8") as f:
                published = f.read()
            around = sentences(published) if case.get("tools") else {}
            want, got = render(case, case["messages"], published), render(case, case["messages"], template, **how, **around)
            assert want == got, (case, want, got)
            checked[form] += 1
        hidden, kept = [hide(m, NAMES[:6] if m["role"] == "assistant" else NAMES) for m in case["messages"]], 0
        for m, h in zip(case["messages"], hidden):
            if wrapped(m):  # the template tests for this mark
                h["content"] = h["content"].replace("\ue0f0tool_response>", "<tool_response>").replace("\ue0f0/tool_response>", "</tool_response>")
                kept += 2
        text = render({**case, "tools": hide(case.get("tools"), NAMES)}, hidden, template, **how)
        cases.append({**case, "form": form, "rendered": rendered, "marks": sum(text.count(m) for m in NAMES) - kept})
    root = {"generator": "make_chat_qwen_json.py", "seed": SEED, **{p: metadata.version(p) for p in ["jinja2", "transformers"]}}
    with open(os.path.join(args.out, "qwen_json.json"), "w", encoding="utf-8") as f:
        f.write("{\n" + "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in root.items()) + ' "cases": [\n' +
                ",\n".join("  " + json.dumps(c) for c in cases) + "\n ]\n}\n")
    print(len(cases), "conversations; the same in published templates:", checked)


if __name__ == "__main__":
    main()
