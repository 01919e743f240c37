"""Reads the calls that a reply states, for real_replies.py: one parser per dialect.

Based on the prompts and on the formats that the families publish (Hermes and Qwen3-Coder tool calls, UI-TARS's
actions, pyautogui scripts, the computer tools of Anthropic and OpenAI, assets/pocket/pocket/dialect.py). It uses
Python's parsers of JSON and Python, and shares no code with actions/.
"""

import ast
import json
import re

from replies_bind import Unclear, bind, HEIGHT, WIDTH

MOST = 8  # maximum number of actions in a reply
FENCE = re.compile(r"```[\w+-]*[ \t]*\n?(.*?)(?:```|\Z)", re.S)


def unique(pairs):
    """Refuses JSON objects with duplicate keys."""
    out = dict(pairs)
    if len(out) != len(pairs):
        raise Unclear("a key is given twice")
    return out


DECODERS = [json.JSONDecoder(object_pairs_hook=unique), json.JSONDecoder(object_pairs_hook=unique, strict=False)]


def closed(text):
    """Adds missing brackets at the end of a JSON text; refuses one that ends within a value."""
    stack, string, escape = [], False, False
    for at, c in enumerate(text):
        if string:
            string, escape = (c != '"' or escape), (c == "\\" and not escape)
        elif c == '"':
            string = True
        elif c in "{[":
            stack.append("}" if c == "{" else "]")
        elif c in "}]":
            if stack and stack[-1] != c and re.fullmatch(r"[\s}\]]*", text[at:]):
                text = text[:at].rstrip() + "".join(reversed(stack))  # only the order of closing brackets is wrong
                stack = []
                break
            if not stack or stack.pop() != c:
                raise Unclear("brackets that do not match")
    if string or not re.search(r"[\"}\]]\s*\Z", text):
        raise Unclear("it ends within a value")
    return text.rstrip() + "".join(reversed(stack))


def json_in(text, every=True):
    """Returns ([value, ...], exact) of the JSON objects of a text; exact: it is one and nothing else.

    every: all objects of a list will be performed, so one that cannot be read makes all of them doubtful.
    """
    t = text.strip()
    m = re.fullmatch(r"```(?:json)?\s*\n(.*?)\n?```", t, re.S)
    for i, decoder in enumerate(DECODERS):
        try:
            return [decoder.decode(m[1].strip() if m else t)], i == 0
        except ValueError:
            pass
    found, at = [], 0
    while True:
        starts = [k for k in (t.find("{", at), t.find("[{", at)) if k >= 0]
        if not starts:
            break
        begin = min(starts)
        try:
            value, at = DECODERS[1].raw_decode(t, begin)
            found.append(value)
        except Unclear:
            if not found or every:
                raise
            break  # only the first object counts
        except ValueError:
            if not found:
                return [broken(t[begin:], every)], False
            try:
                found += [broken(t[begin:], every)] if every else []
            except Unclear:
                pass
            break  # those before it count, and the model is shown how many were read
    if not found:
        raise Unclear("no JSON object")
    return found, False


class Words(ast.NodeTransformer):
    """Replaces JSON's literals with Python's."""

    def visit_Name(self, node):
        """Returns the constant that a name stands for."""
        words = {"true": True, "false": False, "null": None}
        return ast.Constant(words[node.id]) if node.id in words else node


def broken(text, every):
    """Returns the value of a JSON text that Python can read, or that only lacks brackets at its end."""
    if not every and text.startswith("["):
        try:
            return DECODERS[1].raw_decode(text, 1)[0]
        except ValueError:
            pass
    t = re.split(r"\n```|</tool_call>|\s*</?(?:t\w*)?\Z", text)[0].strip()
    t = re.sub(r"(?<=, )(\w+)(?=: [\"\d])", r'"\1"', t)  # keys without quotes
    try:
        value = ast.literal_eval(Words().visit(ast.parse(t, mode="eval")))
        if isinstance(value, (dict, list)):
            return value
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        return DECODERS[1].decode(closed(t))
    except ValueError:
        raise Unclear("JSON that cannot be read") from None


def split(obj, key, what):
    """Returns (name, arguments) of an object with the tool's name in `key` and the arguments beside it."""
    if not isinstance(obj, dict) or not isinstance(obj.get(key), str):
        raise Unclear(f"no {what}")
    return obj[key], {k: v for k, v in obj.items() if k != key}


def holo_calls(d, text):
    """Reads the steps of Holo: an object with note, thought, and the call under `outer`, named by `inner`."""
    if re.search(r"<tool_call>|<function=", text):
        return call_calls(d, text)[0], False
    outer, inner = ("tool_call", "tool_name") if d.syntax == "holo3" else ("action", "action")
    objects, exact = json_in(text, d.run_all)
    calls = []
    for o in objects:
        if calls and isinstance(o, dict) and not {"action", "tool_call", "name", "tool_name"} & set(o):
            return calls, False  # an object of another kind follows the steps
        if not isinstance(o, dict):
            raise Unclear("not a step")
        if isinstance(o.get(outer), dict):
            exact = (
                exact
                and isinstance(o.get("thought"), str)
                and not set(o) - {"note", "thought", outer}
                and isinstance(o.get("note"), (str, type(None)))
            )
            calls.append(split(o[outer], inner, "tool"))
        else:
            exact = False
            rest = {k: v for k, v in o.items() if k not in ("note", "thought")}
            calls.append(named(d, rest) if "arguments" in rest else split(rest, inner, "tool"))
    return calls, exact


def named(d, o):
    """Returns (name, arguments) of a function call in any of the published JSON forms."""
    if not isinstance(o, dict):
        raise Unclear("not a call")
    if isinstance(o.get("function"), dict):
        o = o["function"]
    name = o.get("name", o.get("function"))
    if not isinstance(name, str):
        raise Unclear("a call without a name")
    keys = [k for k in ("arguments", "parameters", "input") if k in o]
    args = o[keys[0]] if keys else {k: v for k, v in o.items() if k not in ("name", "function", "type", "id")}
    if isinstance(args, str):
        args = json_in(args)[0][0]
    if not isinstance(args, dict):
        raise Unclear("arguments that are not an object")
    if d.syntax == "qwen":
        if name == "computer_use":
            return split(args, "action", "action")
        if isinstance(args.get("action"), str) and args["action"] != name:
            raise Unclear("two names of the action")
        args = {k: v for k, v in args.items() if k != "action"}
    return name, args


def xml_value(v):
    """Returns the text of a parameter without the line breaks around it."""
    return re.sub(r"\A\n|\n\Z", "", v)


def typed(d, name, args):
    """Converts the texts of XML parameters to values, unless the tool's parameter is a text."""
    tool, _ = d.tool(args.get("action", "") if name == "computer_use" else name)
    texts = {"action"}
    for a in tool.get("args", []):
        own = {"name": a} if isinstance(a, str) else a
        if (
            own.get("is", own["name"]) in ("text", "element", "key", "direction", "button", "status")
            or own.get("is", own["name"]) in ("keys", "hold", "tap")
            and not args.get(own["name"], "").lstrip().startswith("[")
        ):
            texts.update([own["name"]] + own.get("aliases", []))
    out = {}
    for k, v in args.items():
        try:
            out[k] = v if k in texts else DECODERS[0].decode(v.strip())
        except ValueError:
            try:
                out[k] = ast.literal_eval(v.strip())
            except (ValueError, SyntaxError):
                out[k] = v
    return out


def xml_calls(d, text):
    """Reads calls of Qwen3-Coder's form: <function=NAME> with <parameter=NAME> blocks."""
    calls = []
    quoted = text
    text = re.sub(r'(<(?:function|parameter)=)"(\w+)"(?=>)', r"\1\2", text)
    exact = (
        re.fullmatch(
            r"[^<]*<tool_call>\s*<function=\w+>\s*(?:<parameter=\w+>\n.*?\n</parameter>\s*)*</function>\s*"
            r"</tool_call>\s*",
            text,
            re.S,
        )
        is not None
        and text == quoted
    )
    for m in re.finditer(r"<function=([^>\s]+)>(.*?)(</function>|(?=<function=)|\Z)", text, re.S):
        args = {}
        if calls and not d.run_all:
            exact = False
            break
        if not m[3] and not re.search(r"</parameter>\s*(</?\w*)?\Z|<parameter=[^>]+>\n[^\n]*\n\s*(</?\w*)?\Z", m[2]):
            raise Unclear("a call that is cut off")  # a one-line value is complete with its line break
        exact = exact and bool(m[3])
        for p in re.finditer(
            r"<parameter=([^>]+)>(.*?)(</parameter>|(?=<parameter=)|(?:</?\w*)?\s*\Z)", m[2], re.S
        ):
            if p[1] in args:
                raise Unclear("a parameter is given twice")
            args[p[1]] = xml_value(p[2])
        rest = re.sub(r"<parameter=[^>]+>.*?(</parameter>|(?=<parameter=)|\Z)", "", m[2], flags=re.S)
        exact = exact and not rest.strip()  # tags in another form
        args = typed(d, m[1], args)
        calls.append(
            split(args, "action", "action") if d.syntax == "qwen" and m[1] == "computer_use" else (m[1], args)
        )
    if not calls:
        raise Unclear("no function")
    return calls, exact


def in_python(d, text):
    """Reads a call in Python's form at the beginning of a text, alone or first of a list."""
    text = re.split(r"\n```|<\|", text)[0].strip()
    for end in [len(text)] + [i + 1 for i, c in enumerate(text) if c in ")]"]:
        try:
            node = ast.parse(text[:end] + ("]" if text[0] == "[" and text[end - 1] == ")" else ""), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        nodes = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
        if not nodes or not isinstance(nodes[0], ast.Call):
            break
        name = ast.unparse(nodes[0].func)
        if name == "computer_use":
            return [split({k.arg: literal(k.value) for k in nodes[0].keywords}, "action", "action")]
        return [python_call(d, nodes[0])[:2]]
    raise Unclear("no call in Python")


def call_calls(d, text):
    """Reads function calls: Hermes blocks, XML blocks, or JSON without a wrapper."""
    if "<function=" in text:
        return xml_calls(d, text)
    blocks = re.findall(r"<tool_call>(.*?)(</tool_call>|(?=<tool_call>)|\Z)", text, re.S)
    if blocks:
        if re.search(r'\{\s*"name"\s*:', text[: text.index("<tool_call>")]):
            raise Unclear("a call in tags behind one without")
        exact = re.fullmatch(r"[^<{\[]*<tool_call>\s*\{.*\}\s*</tool_call>\s*", text, re.S) is not None
        exact = exact and len(blocks) == 1 and (d.syntax == "qwen" or d.name == "gemini")
        calls = []
        for body, end in blocks:
            if calls and not d.run_all:
                break
            objects, whole = json_in(body, d.run_all)
            exact = exact and whole and bool(end)
            calls += [c for o in objects for c in (o if isinstance(o, list) else [o])]
    elif m := re.search(r"^\s*\[?(\w+)\(", text, re.M):
        return in_python(d, text[m.start() :]), False
    else:
        objects, exact = json_in(text, d.run_all)
        exact = exact and d.syntax == "function"
        calls = [c for o in objects for c in (o if isinstance(o, list) else [o])]
    exact = (
        exact
        and len(calls) == 1
        and isinstance(calls[0], dict)
        and set(calls[0]) == {"name", "arguments"}
        and isinstance(calls[0]["arguments"], dict)
    )
    return [named(d, c) for c in (calls if d.run_all else calls[:1])], exact


def object_calls(d, text):
    """Reads the actions of Anthropic's and OpenAI's computer tools: objects, alone or as their servers wrap them."""
    key = "action" if d.syntax == "anthropic" else "type"
    if re.search(r"<tool_call>|<function=", text):
        return [split(a, key, key) if n == "computer" else (n, a) for n, a in call_calls(d, text)[0]], False
    objects, exact = json_in(text, d.run_all)
    calls, said = [], None
    exact = exact and (d.run_all or len(objects) == 1)
    for o in [c for o in objects for c in (o if isinstance(o, list) else [o])]:
        if calls and not d.run_all:
            break
        if (
            isinstance(o, dict)
            and o.get("type") in ("text", "message", "output_text")
            and isinstance(o.get("text"), str)
            and set(o) <= {"type", "text"}
            and isinstance(objects[0], list)
        ):
            said = o["text"]
        elif isinstance(o, dict) and o.get("type") == "tool_use" and isinstance(o.get("input"), dict):
            calls.append(split(o["input"], key, key) if o.get("name") == "computer" else (o.get("name"), o["input"]))
        elif (
            isinstance(o, dict)
            and o.get("type", "computer_call") == "computer_call"
            and isinstance(o.get("actions", o.get("action")), (list, dict))
        ):
            inner = o.get("actions", o.get("action"))
            calls += [split(a, key, key) for a in (inner if isinstance(inner, list) else [inner])]
        else:
            exact = exact and len(objects) == 1 and not isinstance(objects[0], list)
            if calls and not isinstance(objects[0], list) and not isinstance(o.get(key), str):
                break  # an object of another kind follows the actions
            calls.append(split(o, key, key))
    if not calls and said is not None:
        return [("answer", {"text": said})], exact
    return calls, exact


def literal(node):
    """Returns the value of a Python literal; refuses everything else."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        raise Unclear("an argument that is not a literal") from None


def python_call(d, node):
    """Returns (name, arguments, exact) of a Python call, with positional or named arguments."""
    name = ast.unparse(node.func)
    tool, exact = d.tool(name)
    names = [a if isinstance(a, str) else a["name"] for a in tool.get("args", [])]
    args, values = {}, [literal(a) for a in node.args]
    if any(k.arg is None for k in node.keywords):
        raise Unclear("unpacked arguments")
    if names[:1] == ["keys"] and name.endswith("hotkey") and values:
        args["keys"] = list(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
    elif (
        names[:2] == ["x", "y"] and len(values) == 1 and isinstance(values[0], (list, tuple)) and len(values[0]) == 2
    ):
        args["x"], args["y"] = values[0]
        exact = False
    elif len(values) > len(names):
        raise Unclear("too many arguments")
    else:
        args.update(zip(names, values))
    for k in node.keywords:
        if k.arg in args:
            raise Unclear(f"'{k.arg}' is given twice")
        args[k.arg] = literal(k.value)
    return name, args, exact


def statements(d, body, calls):
    """Appends the calls of Python statements; returns whether there are only calls."""
    exact = True
    for s in body:
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
            name, args, ok = python_call(d, s.value)
            calls.append((name, args))
            exact = exact and ok
        elif isinstance(s, ast.Expr) and isinstance(s.value, ast.Name) and s.value.id in ("DONE", "FAIL", "WAIT"):
            calls.append((s.value.id, {}))
            exact = False
        elif isinstance(s, (ast.Import, ast.ImportFrom)):
            exact = False
        elif isinstance(s, ast.For) and not s.orelse and (m := re.fullmatch(r"range\((\d+)\)", ast.unparse(s.iter))):
            once = []
            statements(d, s.body, once)
            calls += once * min(int(m[1]), MOST + 1)
            exact = False
        else:
            raise Unclear("a statement that is not a call")
    return exact


def python_calls(d, text):
    """Reads a pyautogui script: the code of its section or fence."""
    code = re.split(r"^#+ *Code:?[ \t]*$", text, flags=re.M)
    exact = len(code) == 2 and bool(re.match(r"\s*## Action:\n", text))
    fences = FENCE.findall(code[1] if len(code) > 1 else text)
    if len(fences) > 1 or len(code) > 2:
        exact = False
    script = fences[0] if fences else code[1] if len(code) > 1 else text
    exact = exact and len(fences) == 1 and text.rstrip().endswith("```")
    try:
        tree = ast.parse(script.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Unclear("not Python") from None
    calls = []
    exact = statements(d, tree.body, calls) and exact
    if not calls:
        raise Unclear("no call")
    return calls, exact


def uitars_args(d, name, node):
    """Returns the arguments of a call; unnamed values are the first parameters of the tool."""
    names = [a if isinstance(a, str) else a["name"] for a in d.tool(name)[0].get("args", [])] if node.args else []
    if len(node.args) > len(names) or len({k.arg for k in node.keywords}) < len(node.keywords):
        raise Unclear("arguments without names, or one given twice")
    args = {n: literal(v) for n, v in zip(names, node.args)}
    if any(k.arg in args for k in node.keywords):
        raise Unclear("an argument is given twice")
    return {**args, **{k.arg: literal(k.value) for k in node.keywords}}


def uitars_call(d, text):
    """Returns ((name, arguments), rest, exact) of the call at the beginning of a text."""
    m = re.match(r"\s*(\w+)\s*(\(|\Z|\n)", text)
    if not m:
        raise Unclear("no call")
    if m[2] != "(":
        if [a for a in d.tool(m[1])[0].get("args", []) if isinstance(a, str) or not a.get("hidden")]:
            raise Unclear("a name without its arguments")
        return (m[1], {}), text[m.end() :], False
    flat = text.lstrip().replace("\n", "\\n")
    for end in (i + 1 for i, c in enumerate(flat) if c == ")"):
        try:
            node = ast.parse(flat[:end], mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        if not isinstance(node, ast.Call) or any(k.arg is None for k in node.keywords):
            raise Unclear("no call")
        args = uitars_args(d, m[1], node)
        exact = (
            not node.args
            and all(isinstance(v, str) for v in args.values())
            and "\n" not in text.lstrip()[:end]
            and not re.search(r"\\(?![n'\"\\])", flat[:end])
        )
        return (m[1], args), flat[end:].replace("\\n", "\n"), exact
    odd = re.fullmatch(r"\s*(type|finished)\(content='(.*)'\)?\s*", text, re.S)  # a quote that is not escaped
    if odd and not re.search(r"'\s*\)\s*\S", odd[2]):
        return (
            (m[1], {"content": re.sub(r"\\([nt'\"\\])", lambda e: {"n": "\n", "t": "\t"}.get(e[1], e[1]), odd[2])}),
            "",
            False,
        )
    last = text.strip()  # only the end of the call is missing, after a complete value
    box = re.search(r"(box|point)=['\"][^'\"]*[)\]>]$", last)
    ends = [")"] if last.endswith(("'", '"')) else ["')", '")'] if box else []
    for end in ends:
        try:
            node = ast.parse(last + end, mode="eval").body
            if isinstance(node, ast.Call) and (node.keywords or node.args):
                return (m[1], uitars_args(d, m[1], node)), "", False
        except (SyntaxError, ValueError):
            pass
    raise Unclear("a call that cannot be read")


def uitars_calls(d, text):
    """Reads the action after "Action:"; text after it makes the reading doubtful but does not change it."""
    parts = re.split(r"(?<!\S)Action\s*[:：]", text)
    exact = len(parts) == 2 and (parts[0].startswith("Thought:") or not parts[0].strip())
    body = re.sub(r"\A\s*```\w*\n|\n```\s*\Z", "", parts[1] if len(parts) > 1 else text)
    call, rest, ok = uitars_call(d, body)
    name, args = call
    exact = exact and ok and not rest.strip()
    for k in {"start_box", "end_box", "point", "start_point", "end_point"} & set(args):
        plain = isinstance(args[k], str) and re.fullmatch(r"\((\d+), ?(\d+)\)", args[k])
        exact = exact and bool(plain)
        args[k] = [int(plain[1]), int(plain[2])] if plain else list(args[k]) if isinstance(args[k], tuple) else args[k]
    return [(name, args)], exact


PLACE = r"<at><(\d{1,2})><\.([0-7])><(\d{1,2})><\.([0-7])>"


def pocket_actions(d, text):
    """Reads a step of the embedded model; returns ([action, ...], exact)."""
    m = re.fullmatch(r"([^<]{0,40})<(\w+)>(.*?)\n?", text, re.S)
    if not m:
        raise Unclear("no verb")
    verb, rest = m[2], m[3]
    if "\n" in rest:
        raise Unclear("several lines")
    label = r"([^<]{0,40})"
    scale = min(1, 1024 / max(WIDTH, HEIGHT))
    shown = [round(WIDTH * scale), round(HEIGHT * scale)]

    def at(g, k):
        n = [16 * int(g[k]) + 2 * int(g[k + 1]) + 1, 16 * int(g[k + 2]) + 2 * int(g[k + 3]) + 1]
        if n[0] >= shown[0] or n[1] >= shown[1]:
            raise Unclear("outside of the picture")
        return n, [n[0] * WIDTH // shown[0], n[1] * HEIGHT // shown[1]]

    forms = {
        "click": label + PLACE + "(.*)",
        "double": label + PLACE,
        "hover": label + PLACE,
        "write": label + PLACE + "(.*)",
        "append": label + PLACE + "(.*)",
        "scroll": label + PLACE + r"(up|down|left|right) ([1-9]\d?)",
        "drag": label + PLACE + "<to>" + label + PLACE,
        "key": "(.+)",
        "wait": "",
        "missing": "(.{0,60})",
        "done": "(.{0,200})",
    }
    g = re.fullmatch(forms.get(verb, "(?!)"), rest)
    if not g:
        raise Unclear("not the form of its verb")
    if verb in ("key", "wait", "missing", "done"):
        name, args = {
            "key": ("key", {"keys": g[1] if verb == "key" else 0}),
            "wait": ("wait", {}),
            "missing": ("missing", {"text": g[1] if verb == "missing" else ""}),
            "done": ("done", {"text": g[1] if verb == "done" else ""}),
        }[verb]
        return bind(d, name, args)
    n, xy = at(g, 2)
    out = {"x": xy[0], "y": xy[1], "n": n}
    if g[1]:
        out["element"] = g[1]
    if verb in ("click", "double"):
        out.update(kind="click", button="left", count=2 if verb == "double" else 1)
        if verb == "click" and g[6]:
            if g[6] not in ("ctrl", "shift", "alt"):
                raise Unclear("text after a click")
            out["hold"] = [{"ctrl": "Control_L", "shift": "Shift_L", "alt": "Alt_L"}[g[6]]]
    elif verb == "hover":
        out["kind"] = "move"
    elif verb == "scroll":
        k, a = int(g[7]), g[6]
        if k > 30:
            raise Unclear("too far")
        out.update(kind="scroll", dx=k * ((a == "right") - (a == "left")), dy=k * ((a == "down") - (a == "up")))
    elif verb == "drag":
        n2, xy2 = at(g, 7)
        out.update(kind="drag", button="left", x2=xy2[0], y2=xy2[1], n=n + n2)
    else:
        if len(g[6]) > 200:
            raise Unclear("too long")
        out.update(kind="type", text=g[6], press_enter=False, overwrite=verb == "write")
        if verb == "append":
            out["at_end"] = True
    return [out], True


READERS = {
    "holo3": holo_calls,
    "holo1": holo_calls,
    "function": call_calls,
    "xml": call_calls,
    "qwen": call_calls,
    "anthropic": object_calls,
    "openai": object_calls,
    "pyautogui": python_calls,
    "uitars": uitars_calls,
}
ENDS = ("answer", "infeasible", "ask")


def read(d, reply):
    """Returns ("must" | "may" | "none", actions, why).

    must: the text states these actions in the requested form. may: it states them in another form, so asking again is
    acceptable. none: it states none, or none that may be performed.
    """
    try:
        if d.syntax == "pocket":
            actions, exact = pocket_actions(d, reply)
            return ("must" if exact else "may"), actions, ""
        text = reply.rsplit("</think>", 1)[-1].lstrip()
        if "<think>" in text:
            raise Unclear("reasoning without an end")
        calls, exact = READERS[d.syntax](d, text)
        if not calls:
            raise Unclear("no call")
        if len(calls) > 1 and not d.run_all:
            calls, exact = calls[:1], False
        actions = []
        for name, args in calls:
            if not isinstance(name, str) or not isinstance(args, dict):
                raise Unclear("not a call")
            try:
                bound, ok = bind(d, name, args)
            except Unclear:
                if not actions:
                    raise
                exact = False  # the calls before it may be performed
                break
            actions, exact = actions + bound, exact and ok
        if d.syntax != "pyautogui" and len(actions) > 1 and len(calls) > 1:
            exact = False
        if d.name == "fara" and calls[0][0] == "terminate" and not actions[0]["text"]:
            actions[0]["text"] = text.split("<tool_call>")[0].strip()  # Fara writes its answer before the last call
        while len(actions) > 1 and actions[-1]["kind"] in ENDS:
            actions, exact = actions[:-1], False
        if len(actions) > MOST or any(a["kind"] in ENDS for a in actions[:-1]):
            raise Unclear("too many actions, or actions after the end")
        return ("must" if exact else "may"), actions, ""
    except Unclear as why:
        return "none", [], str(why)
