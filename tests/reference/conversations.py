"""Random conversations for published chat templates (make_templates.py).

Each depends on the seed, its family and its number only.  A "small" one has fewer and shorter parts.  Added tokens occur
only in the reasoning of a reply.  Integers fit in 64 bits, the limit of JSON parsers.
"""
import random

PICTURES = {"qwen2_5_vl", "qwen3_vl", "qwen3_5_nothink", "qwen3_5_think", "qwen3_6", "qwen3_8"}
STRICT = {"qwen3_5_nothink", "qwen3_5_think", "qwen3_6", "qwen3_8"}  # templates that raise exceptions
NEMOTRON = {"nemotron_3_nano", "nemotron_3_super", "nemotron_3_ultra", "nemotron_3_5_lightning"}
PARTS = PICTURES  # content may be a list of parts; the others print such a list, drop it or fail
TEXT_ARGUMENTS = {"qwen3", "qwen3_instruct_2507", "qwen3_vl"}  # arguments may be JSON in a string
FAMILIES = ["qwen2_5_vl", "qwen3_vl", "qwen3_5_nothink", "qwen3_5_think", "qwen3_6", "qwen3_8", "nemotron_3_nano",
            "nemotron_3_super", "nemotron_3_ultra", "nemotron_3_5_lightning", "qwen2_5", "qwen3", "qwen3_instruct_2507"]

SPACES = ["", "", "", " ", "\n", "\n\n", "\t ", "\u00a0", "\u2003", "\x0b", "\r\n", " \u3000\n", "\u200b", "\x85", "\x1f",
          "\u2028", "\ufeff"]
WORDS = [
    "Open the file", "42", "\u6771\u4eac", "\U0001f642", "e\u0301", "\U0001f469\u200d\U0001f4bb", "caf\u00e9", "{{ x }}",
    "{% if %}", "{# c #}", "{%- endfor %}",
    "}}", "<function=f>", "</function>", "<parameter=p>", "</parameter>", "<tools>", "</tools>", "it's", "\"quoted\"",
    "C:\\temp\\n", "a  b", "line\nline", "<b>&amp;</b>",
    "DON'T", "1e-7", "\u0130stanbul", "\u05e9\u05dc\u05d5\u05dd", "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\ud55c\uad6d\uc5b4", "\u1e69\u0323", "A\u030a", "\u212b", "tool_call", "<|im_end",
    "im_start|>", "think>", "</ think>", "[INST]", "<s>", "```python\nx = 1\n```", "$&%", "| tojson", "None", "true",
    "\\u0041", "'", "\x07", "\x7f", "Done.", "the answer is", "user\n"]
NAMES = ["click", "get_weather", "a.b-c", "x", "\u540d\u524d", "write_file", "f\u00e9"]
KEYS = ["x", "path", "with space", "\u00e9", "city", "a.b", "n", "items", "it's", "type", "name", "<k>"]
SCALARS = ["text", "", " padded\n", "two\nlines",
           "<b>&'\"</b>", "\u6771\u4eac\U0001f642", "{{ x }}", "back\\slash", "\u2028\u00a0", "\x01", 0, 3, -1, 2 ** 53 + 1, 2 ** 63 - 1,
           -2 ** 63, 0.5, 1.0, -0.0, 1e-7, 1e16, 1e22, 123456.789, 0.1, 1e-5, True, False, None, "true", "1", "None",
           "\U0001f469\u200d\U0001f4bb", "e\u0301"]


class Draw:
    def __init__(self, seed, family, number, small):
        self.rng, self.family, self.small = random.Random(f"{seed}/{family}/{number}/{small}"), family, small

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, xs):
        return self.rng.choice(xs)

    def text(self, most=None):
        n = self.rng.randint(0, most or (2 if self.small else 6))
        return self.pick(SPACES) + "".join(self.pick(WORDS) + self.pick([" ", " "] + SPACES) for _ in range(n))

    def value(self, depth=0):
        if depth < 3 and self.chance(0.25):
            n = self.rng.randint(0, 2 if self.small else 3)
            if self.chance(0.5):
                return [self.value(depth + 1) for _ in range(n)]
            return {self.pick(KEYS): self.value(depth + 1) for _ in range(n)}
        return self.pick(SCALARS)

    def schema(self, depth=0):
        kind = self.pick(["string", "integer", "number", "boolean", "array", "object"] if depth < 2 else ["string", "integer"])
        s = {"type": kind if self.chance(0.9) else [kind, "null"]}
        if self.chance(0.5):
            s["description"] = self.text(3)
        if self.chance(0.2):
            s["enum"] = [self.pick(SCALARS) for _ in range(self.rng.randint(1, 3))]
        if self.chance(0.2):
            s["default"] = self.value(2)
        if self.chance(0.15):
            s["maximum"] = self.pick([1000.0, 1e-7, 10, 1e16, 2 ** 63 - 1])
        if self.chance(0.1):
            s["nullable"] = self.pick([True, False])
        if kind == "array":
            s["items"] = self.schema(depth + 1)
        if kind == "object" and self.chance(0.8):
            s.update(self.parameters(depth + 1))
        if self.chance(0.1):
            del s["type"]
        return s

    def parameters(self, depth=0):
        names = self.rng.sample(KEYS, self.rng.randint(0, 2 if self.small or depth else 4))
        p = {"type": "object", "properties": {n: self.schema(depth) for n in names}}
        if self.chance(0.6):
            p["required"] = names[:self.rng.randint(0, len(names))]
        if self.chance(0.2):
            p["additionalProperties"] = self.pick([False, True, {"type": "string"}, {}])
        if self.chance(0.1):
            p["$defs"] = {"T": {"enum": [1, 2.5, None, "\u00e9"]}}
        return p

    def tool(self):
        f = {"name": self.pick(NAMES)}
        if self.chance(0.85):
            f["description"] = self.text(4)
        if self.chance(0.9):
            f["parameters"] = self.parameters() if self.chance(0.95) else {}
        if self.chance(0.15):
            f["strict"] = self.pick([True, False])
        if self.chance(0.1):
            f["returns"] = {"type": "string", "description": self.text(2)}
        if self.chance(0.1):
            f = {k: f[k] for k in reversed(f)}
        t = {"type": "function", "function": f}
        return t if self.chance(0.92) else f if self.chance(0.5) else {**t, "cache_control": None}

    def picture(self):
        return {"type": "image", "image": f"p{self.rng.randint(0, 9)}.png"}

    def parts(self, pictures):
        n = self.pick([0, 1, 1, 2, 3]) if pictures and self.family in PICTURES else 0
        parts = [self.picture() for _ in range(n)] + [{"type": "text",
        "text": self.text()} for _ in range(self.rng.randint(0 if n else 1, 2))]
        self.rng.shuffle(parts)
        return parts

    def content(self, pictures=True, lists=0.5):
        """lists: probability that content is a list."""
        return self.parts(pictures) if self.chance(lists if self.family in PARTS else 0.01) else self.text()

    def system(self):
        content = self.parts(False) if self.family in PARTS and self.chance(0.3) else self.pick(["",
        " \n"]) if self.chance(0.15) else self.text()
        return {"role": "system", "content": content}

    def call(self, number):
        f = {"name": self.pick(NAMES), "arguments": {self.pick(KEYS): self.value() for _ in range(self.rng.randint(0, 3))}}
        if self.family in TEXT_ARGUMENTS and self.chance(0.15):
            f["arguments"] = self.pick(['{"x": 1,"y":"\u00e9"}', "{}", '{ "a" : [1.0, null] }'])
        elif self.family in STRICT | NEMOTRON and self.chance(0.04):
            del f["arguments"]
        return {"id": f"call_{number}", "type": "function", "function": f} if self.chance(0.93) else f

    def reply(self, calls):
        m, text = {"role": "assistant"}, self.text()
        way = self.rng.random()
        if way < 0.25:
            m["reasoning_content"] = self.text()
        elif way < 0.5:
            text = self.pick(["<think>\n", "<think>", "", "\n<think>\n\n"]) + self.text() + self.pick(["\n</think>\n\n",
            "</think>", "</think>\n \n"]) + text
        elif way < 0.54:
            text = self.pick(["<think>\n" + self.text(), text + "<think></think>" + self.text(),
            "<think>a</think>" + self.text() + "</think>" + text])
        m["content"] = text
        if self.family in PARTS and self.chance(0.1):
            m["content"] = [{"type": "text", "text": text}]
        if calls:
            m["tool_calls"] = [self.call(i) for i in range(calls)]
            if self.chance(0.3):
                m["content"] = "" if self.chance(0.5) else None
                if m["content"] is None and self.chance(0.3):
                    del m["content"]
        elif self.chance(0.05):
            m["tool_calls"] = []
        return m

    def results(self, calls):
        for i in range(calls if self.chance(0.9) else self.rng.randint(1, 3)):
            m = {"role": "tool", "content": self.content(lists=0.3)}
            if self.chance(0.8):
                m["tool_call_id"] = f"call_{i}"
            if self.chance(0.2):
                m["name"] = self.pick(NAMES)
            yield m

    def messages(self):
        out = [self.system()] if self.chance(0.6) else []
        if out and self.family not in STRICT:
            out += [{"role": "system", "content": self.text()} for _ in range(self.rng.randint(1, 2))] if self.chance(0.1) else []
        out.append({"role": "user", "content": self.content()})
        if self.family not in STRICT and self.chance(0.02):
            out.append({"role": "developer", "content": self.text()})
        for _ in range(self.rng.randint(0, 2 if self.small else 4)):
            calls = self.pick([0, 0, 1, 1, 2, 3])
            out.append(self.reply(calls))
            if calls:
                out += self.results(calls)
            if not calls or self.chance(0.3):
                out.append({"role": "user", "content": self.content()})
        if self.chance(0.15):
            out.append(self.reply(self.pick([0, 0, 1, 2])))
        elif self.chance(0.1) and out[-1]["role"] == "user" and len(out) > 1 and out[-2]["role"] not in ("system", "developer"):
            out.pop()
        return out

    def options(self):
        f, o = self.family, {}
        if (f in STRICT | NEMOTRON | {"qwen3"} and self.chance(0.6)) or self.chance(0.05):
            o["enable_thinking"] = self.pick([True, False])
        if f in PICTURES and self.chance(0.3):
            o["add_vision_id"] = self.pick([True, True, False])
        if f in ("qwen3_6", "qwen3_8") and self.chance(0.6):
            o["preserve_thinking"] = self.pick([True, False])
        if f == "qwen3_8" and self.chance(0.6):
            o["reasoning_effort"] = self.pick(["xhigh", "medium", "low"]) if self.chance(0.98) else "high"
        if f in NEMOTRON and self.chance(0.5):
            o["truncate_history_thinking"] = self.pick([True, False])
        for family, name in (("nemotron_3_super", "low_effort"), ("nemotron_3_ultra", "medium_effort")):
            if f == family and self.chance(0.4):
                o[name] = self.pick([True, True, False])
        return o

    def spoil(self, messages):
        """Changes a conversation so that the templates of STRICT refuse it."""
        way = self.rng.randint(0, 4)
        if way == 0:
            messages.append({"role": "system", "content": self.text()})
        elif way == 1:
            messages.insert(0, {"role": "system", "content": [{"type": "text", "text": "a"}, self.picture()]})
        elif way == 2:
            messages.append({"role": "developer", "content": self.text()})
        elif way == 3:
            messages[:] = [m for m in messages if m["role"] != "user"] or [{"role": "system", "content": "alone"}]
        else:
            messages[-1]["content"] = [{"type": "audio", "audio": "a.wav"}]
        return messages


def draw(seed, family, number, small):
    d = Draw(seed, family, number, small)
    messages = d.messages()
    if family in STRICT and d.chance(0.035):
        d.spoil(messages)
    case = {"messages": messages, "options": d.options(), "add_generation_prompt": d.chance(0.75)}
    if d.chance(0.35 if small else 0.55):
        case["tools"] = [d.tool() for _ in range(d.rng.randint(0, 2 if small else 6))]
    return case
