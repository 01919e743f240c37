#!/usr/bin/env python3
"""Compares the chat templates of published models, rendered by holorun, with transformers and llama.cpp.

    real_template.py [--models NAME ...] [--seed 1] [--conversations 400] [--show 3]

The conversations are those of tests/reference/conversations.py for Qwen2.5 that have tools: several calls in a
message, nested arguments, results, empty contents, incomplete tools. Some contents become lists of texts, and some
arguments become JSON text.

  transformers   apply_chat_template: the text, and its ids by Qwen2Tokenizer
  llama.cpp      /apply-template of its server, compared with the settings of holorun's server; ids by its /tokenize

Every difference must have a known reason, and disappear without that reason. holorun refuses the role developer in a
conversation file, and joins lists of texts if the template cannot use them. llama.cpp reduces tools to name,
description and parameters, writes numbers with six digits, joins lists of texts with line breaks, turns developer
into system, and refuses tools and calls without a type. Exit code 1 for any other difference.
"""

import argparse
import collections
import copy
import json
import os
import random
import sys
import time

import real_models
import real_sides

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "reference"))
import conversations  # noqa: E402

FAMILY = "qwen2_5"


def draw(seed, n):
    """Returns the first n conversations with tools."""
    out, number = [], 0
    while len(out) < n:
        case, rng = conversations.draw(seed, FAMILY, number, False), random.Random(f"{seed}/{number}")
        number += 1
        if not case.get("tools"):
            continue
        case = replace_numbers(
            case, lambda v: 0 if v == 0 else v
        )  # llama.cpp writes -0.0 as -0, which is not an integer in JSON
        for m in case["messages"]:
            if isinstance(m.get("content"), str) and rng.random() < 0.06:
                half = len(m["content"]) // 2
                m["content"] = [
                    {"type": "text", "text": t} for t in (m["content"][:half], m["content"][half:]) if t
                ] or m["content"]
            for call in m.get("tool_calls") or []:
                f = call.get("function", call)
                if "arguments" in f and rng.random() < 0.15:
                    f["arguments"] = json.dumps(f["arguments"], ensure_ascii=rng.random() < 0.5)
        out.append(case)
    return out


def replace_numbers(v, change):
    if isinstance(v, dict):
        return {k: replace_numbers(x, change) for k, x in v.items()}
    if isinstance(v, list):
        return [replace_numbers(x, change) for x in v]
    return change(v) if isinstance(v, float) else v


def joined(messages, by):
    return [
        {**m, "content": by.join(p["text"] for p in m["content"])} if isinstance(m.get("content"), list) else m
        for m in messages
    ]


def six_digits(v):
    text = f"{v:g}"
    return int(text) if text.lstrip("-").isdigit() else float(text)


def parsed(call):
    f = dict(call["function"])
    if isinstance(f.get("arguments"), str):
        f["arguments"] = json.loads(f["arguments"])
    return {**call, "function": f}


def as_llama(case):
    """Returns the conversation as llama.cpp rewrites it, and the names of the changes."""
    new, why = copy.deepcopy(case), []
    new["messages"] = joined(new["messages"], "\n")
    if new["messages"] != case["messages"]:
        why.append("lists become lines")
    for m in new["messages"]:
        if m["role"] == "developer":
            m["role"], why = "system", why + ["developer is system"]
        if m.get("tool_calls"):
            m["tool_calls"] = [parsed(c) for c in m["tool_calls"]]
    new["tools"] = [
        {
            "type": "function",
            "function": {
                "name": t["function"]["name"],
                "description": t["function"].get("description", ""),
                "parameters": t["function"].get("parameters", {}),
            },
        }
        for t in new["tools"]
    ]
    if json.dumps(new["tools"]) != json.dumps(case["tools"]):
        why.append("tools rewritten")
    short = replace_numbers(new, six_digits)
    if json.dumps(short) != json.dumps(new):
        why.append("numbers of six digits")
    return short, why


def typed(v):
    return v if "type" in v and "function" in v else {"type": "function", "function": v.get("function", v)}


def with_types(case):
    """Returns the conversation with {"type": "function", "function": ...} around each tool and call."""
    messages = [
        {**m, "tool_calls": [typed(c) for c in m["tool_calls"]]} if m.get("tool_calls") else m for m in case["messages"]
    ]
    return {**case, "messages": messages, "tools": [typed(t) for t in case["tools"]]}


class Check:
    def __init__(self, model, show):
        self.keys = real_sides.read_keys(model)
        self.normal = real_sides.transformers_tokenizer(self.keys, False).normalizer
        self.tokenizer, self.show = real_sides.transformers_tokenizer(self.keys), show
        self.ours, self.llama = real_sides.Holorun(model), real_sides.Llama(model)
        self.counts = collections.defaultdict(collections.Counter)

    def close(self):
        self.ours.close()
        self.llama.close()

    def render(self, case, normalise):
        """Returns (text, ids), or (None, why) if it is refused."""
        a = self.ours.ask(
            chat={k: case[k] for k in ("messages", "tools")}, open=case["add_generation_prompt"], normalise=normalise
        )
        return (None, a["error"]) if "error" in a else (bytes.fromhex(a["hex"]).decode(), a["ids"])

    def transform(self, case):
        try:
            text = self.tokenizer.apply_chat_template(
                case["messages"],
                tools=case["tools"],
                tokenize=False,
                add_generation_prompt=case["add_generation_prompt"],
            )
            return text, self.tokenizer(text, add_special_tokens=False)["input_ids"]
        except Exception as e:  # errors of the template, and of the Python that it uses
            return None, f"{type(e).__name__}: {e}"

    def llama_render(self, case):
        body = {**{k: case[k] for k in ("messages", "tools")}, "add_generation_prompt": case["add_generation_prompt"]}
        answer = self.llama.post("/apply-template", body)
        return (
            (None, answer[1])
            if isinstance(answer, tuple)
            else (answer["prompt"], self.llama.ids(answer["prompt"], True))
        )

    def note(self, side, verdict, ours=("", []), theirs=("", [])):
        self.counts[side][verdict] += 1
        if not verdict.startswith("DIFFERENT") or self.counts[side][verdict] > self.show:
            return
        a, b = ours[0] or ours[1], theirs[0] or theirs[1]
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        print(
            f"{side}, {verdict}, character {at}\n  ours   {a[max(0, at - 60):at + 60]!r}\n"
            f"  theirs {b[max(0, at - 60):at + 60]!r}",
            flush=True,
        )

    def against_transformers(self, case):
        ours, theirs = self.render(case, False), self.transform(case)
        lists = any(isinstance(m.get("content"), list) for m in case["messages"])
        if ours == theirs:
            return self.note("transformers", "equal")
        if ours[0] is None and theirs[0] is None:
            return self.note("transformers", "refused by both")
        if ours[0] is None and any(m["role"] == "developer" for m in case["messages"]):
            kept = {**case, "messages": [m for m in case["messages"] if m["role"] != "developer"]}
            same = self.transform(kept)[0] == theirs[0] or theirs[0] is None
            return self.note(
                "transformers", "developer: refused here, left out there" if same else "DIFFERENT", ours, theirs
            )
        if theirs[0] is None and lists:
            theirs = self.transform({**case, "messages": joined(case["messages"], "")})
            same = self.render({**case, "messages": joined(case["messages"], "")}, True) == self.render(case, True)
            objects = {
                **case,
                "messages": [
                    {**m, "tool_calls": [parsed(c) for c in m["tool_calls"]]} if m.get("tool_calls") else m
                    for m in with_types({**case, "messages": joined(case["messages"], "")})["messages"]
                ],
            }
            same = same and ours in (
                theirs,
                self.transform(objects),
            )  # the second form also has arguments as objects
            return self.note(
                "transformers", "lists of texts: joined here, an exception there" if same else "DIFFERENT", ours, theirs
            )
        return self.note("transformers", "DIFFERENT text" if ours[0] != theirs[0] else "DIFFERENT ids", ours, theirs)

    def against_llama(self, case):
        theirs, added = self.llama_render(case), False
        if theirs[0] is None and "type" in theirs[1] and (whole := with_types(case)) != case:
            case, added, theirs = whole, True, self.llama_render(whole)
        if theirs[0] is None:
            return self.note("llama.cpp", "DIFFERENT: refused", ("", []), theirs)
        new, why = as_llama(case)
        why += ["types added, without which it refuses"] if added else []
        raw = self.render(case, True)
        ours = raw if raw[0] == theirs[0] else self.render(new, True)
        if ours[0] != theirs[0]:
            return self.note("llama.cpp", "DIFFERENT text", ours, theirs)
        verdict = "equal" if ours is raw and not added else "equal as rewritten"
        for w in why if verdict != "equal" else []:
            self.counts["llama.cpp, of these"][w] += 1
        if ours[1] != theirs[1]:
            normal = self.normal.normalize_str(ours[0])
            if normal == ours[0] or self.llama.ids(normal, True) != ours[1]:
                return self.note("llama.cpp", "DIFFERENT ids", ours, theirs)
            self.counts["llama.cpp, of these"]["ids equal of the normalised text"] += 1
        return self.note("llama.cpp", verdict)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--models", nargs="*", default=list(real_models.MODELS))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--conversations", type=int, default=400)
    p.add_argument("--show", type=int, default=3)
    args = p.parse_args()
    bad, rows, cases = 0, [], draw(args.seed, args.conversations)
    print(
        f"{len(cases)} conversations, {sum(len(c['messages']) for c in cases)} messages, "
        f"{sum(len(c['tools']) for c in cases)} tools, "
        f"{sum(len(m.get('tool_calls') or []) for c in cases for m in c['messages'])} calls; {real_sides.versions()}"
    )
    for model in args.models:
        begun, check = time.monotonic(), Check(real_sides.need(real_models.path(model)), args.show)
        try:
            for case in cases:
                check.against_transformers(case)
                check.against_llama(case)
        finally:
            check.close()
        for side, counts in check.counts.items():
            line = ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())
            wrong = sum(n for verdict, n in counts.items() if verdict.startswith("DIFFERENT"))
            bad += wrong
            if not side.endswith("of these"):
                rows.append({"check": f"template of {model}: {side}", "good": not wrong, "result": line})
            print(f"{model}, {side}: {line}")
        print(f"{model}: {time.monotonic() - begun:.0f} s")
    real_sides.write_rows(rows)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
