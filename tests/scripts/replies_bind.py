"""Converts the arguments of a tool call to an action, for real_replies.py.

This is a second implementation, based on the tables that models are shown (prompts/*.json), the ranges of their
schemas and the definitions of the families' coordinate spaces and key names. It shares no code with actions/.
"""

import json
import math
import os
import re

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WIDTH, HEIGHT = 1280, 800  # size of the screenshot of all stored replies
MARKUP = re.compile(r"</?\s*(tool_call|toolcall|tools?_calls|function|parameter)\b|\[/?TOOL_CALLS\]|<\|", re.I)


class Unclear(Exception):
    """Says why a text states no action, or none that may be performed."""


# Parameters of each kind: required (True), or the default value (None: may be absent).
KINDS = {
    "move": {"element": True, "x": True, "y": True, "point": None},
    "click": {"element": True, "x": True, "y": True, "point": None, "button": "left", "count": 1, "hold": None},
    "mouse_down": {"button": "left", "x": None, "y": None, "point": None, "element": None},
    "mouse_up": {"button": "left", "x": None, "y": None, "point": None, "element": None},
    "drag": {
        "element": True,
        "x": True,
        "y": True,
        "x2": True,
        "y2": True,
        "point": None,
        "point2": None,
        "path": None,
        "hold": None,
        "button": "left",
    },
    "scroll": {
        "element": True,
        "x": True,
        "y": True,
        "point": None,
        "direction": True,
        "amount": 5,
        "distance": None,
        "scroll_x": None,
        "scroll_y": None,
        "scroll_up": None,
        "hold": None,
    },
    "type": {
        "text": True,
        "press_enter": False,
        "overwrite": False,
        "at_end": None,
        "element": None,
        "x": None,
        "y": None,
        "point": None,
    },
    "key": {"keys": True, "key": None, "repeat": 1},
    "key_down": {"key": True},
    "key_up": {"key": True},
    "hold_and_tap": {"hold": True, "tap": True, "seconds": None},
    "wait": {"seconds": 2},
    "observe": {},
    "zoom": {"region": True},
    "plan": {"goals": True},
    "goto": {"text": True},
    "back": {},
    "forward": {},
    "refresh": {},
    "restart": {},
    "ask": {"text": None},
    "answer": {"text": True, "status": None},
    "infeasible": {"text": None},
}
RANGES = {
    "count": (1, 3),
    "amount": (1, 100),
    "distance": (1, 10000),
    "scroll_x": (-10000, 10000),
    "repeat": (1, 20),
    "scroll_y": (-10000, 10000),
    "scroll_up": (-10000, 10000),
    "seconds": (0, 100),
}
WORDS = {
    "button": "left|right|middle|back|forward|wheel",
    "direction": "up|down|left|right",
    "status": "success|failure",
}

NAMED = {
    "ctrl": "Control_L",
    "control": "Control_L",
    "shift": "Shift_L",
    "alt": "Alt_L",
    "option": "Alt_L",
    "super": "Super_L",
    "win": "Super_L",
    "windows": "Super_L",
    "meta": "Super_L",
    "cmd": "Super_L",
    "command": "Super_L",
    "enter": "Return",
    "return": "Return",
    "esc": "Escape",
    "escape": "Escape",
    "tab": "Tab",
    "backspace": "BackSpace",
    "delete": "Delete",
    "del": "Delete",
    "insert": "Insert",
    "space": "space",
    "home": "Home",
    "end": "End",
    "pageup": "Prior",
    "pgup": "Prior",
    "prior": "Prior",
    "next": "Next",
    "pagedown": "Next",
    "pgdn": "Next",
    "pgdown": "Next",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "arrowup": "Up",
    "arrowdown": "Down",
    "arrowleft": "Left",
    "arrowright": "Right",
    "menu": "Menu",
    "capslock": "Caps_Lock",
    "print": "Print",
    "pause": "Pause",
    "plus": "plus",
    "minus": "minus",
}
SIGNS = {
    "+": "plus",
    "-": "minus",
    "=": "equal",
    "/": "slash",
    ".": "period",
    ",": "comma",
    ";": "semicolon",
    "'": "apostrophe",
    "`": "grave",
    "[": "bracketleft",
    "]": "bracketright",
    "\\": "backslash",
    " ": "space",
    "*": "asterisk",
    "!": "exclam",
    "@": "at",
    "#": "numbersign",
    "$": "dollar",
    "%": "percent",
    "&": "ampersand",
    "?": "question",
    ":": "colon",
    "<": "less",
    ">": "greater",
    "_": "underscore",
    "(": "parenleft",
    ")": "parenright",
    "\"": "quotedbl",
    "~": "asciitilde",
}
MODIFIERS = ("Control_L", "Shift_L", "Alt_L", "Super_L")


class Dialect:
    """A dialect file with its tool table, which it may share with another dialect."""

    def __init__(self, name):
        with open(os.path.join(ROOT, "prompts", name + ".json"), encoding="utf-8") as f:
            self.__dict__.update(json.load(f))
        self.run_all = self.__dict__.get("run_all", False)
        self.cmd_is_ctrl = self.__dict__.get("cmd_is_ctrl", False)
        if isinstance(self.tools, str):
            self.tools = Dialect(self.tools).tools

    def tool(self, name):
        """Returns (tool, whether its name is shown to the model)."""
        for t in self.tools:
            if t["name"] == name:
                return t, not t.get("hidden")
        for t in self.tools:
            if name.lower() in [t["name"].lower()] + [a.lower() for a in t.get("aliases", [])]:
                return t, False
        raise Unclear(f"no tool '{name}'")


def uses(tool, arg):
    """Returns an argument of a tool table as (name, parameter, aliases, needed, default, its own entry)."""
    own = {"name": arg} if isinstance(arg, str) else arg
    param = own.get("is", own["name"])
    rule = KINDS[tool["kind"]].get(param)
    needed = own.get("required", rule is True and "default" not in own)
    default = own.get("default", None if rule is True else rule)
    return own["name"], param, own.get("aliases", []), needed, default, own


def number(v):
    """Returns (number, exact): a JSON number, or a string that is one, although no schema allows that."""
    if isinstance(v, bool):
        raise Unclear("a truth value for a number")
    if isinstance(v, (int, float)) and math.isfinite(v):
        return v, True
    if isinstance(v, str) and re.fullmatch(r"\s*[-+]?\d+(\.\d+)?\s*", v):
        return (float(v) if "." in v else int(v)), False
    raise Unclear(f"not a number: {v!r}")


def pair(v):
    """Returns ([x, y], exact) of a point in one value; for a box, its centre."""
    exact = isinstance(v, list)
    if isinstance(v, dict) and set(v) == {"x", "y"}:
        v = [v["x"], v["y"]]
    if isinstance(v, tuple):
        v = list(v)
    if isinstance(v, str):
        m = re.fullmatch(
            r"\s*(?:<\|box_start\|>|<point>|<bbox>)?\s*[(\[]?\s*([-\d.]+(?:[\s,]+[-\d.]+)+)\s*[)\]]?\s*"
            r"(?:<\|box_end\|>|</point>|</bbox>)?\s*",
            v,
        )
        found = re.findall(r"-?\d+(?:\.\d+)?", m[1] if m else v)
        if not m and len(found) != 2:  # other marks around two numbers leave no doubt about them
            raise Unclear(f"not a place: {v!r}")
        v = [number(s)[0] for s in found]
    if not isinstance(v, list) or len(v) not in (2, 4):
        raise Unclear(f"not a place: {v!r}")
    nums = [number(c) for c in v]
    exact = exact and all(e for _, e in nums)
    nums = [n for n, _ in nums]
    if len(nums) == 4:
        if nums[2] < nums[0] or nums[3] < nums[1]:
            raise Unclear("a box that ends before it begins")
        return [(nums[0] + nums[2]) / 2, (nums[1] + nums[3]) / 2], False
    return nums, exact


def extent(d):
    """Returns the size of the image that a dialect's coordinates refer to."""
    if d.coords == "norm1000":
        return 1000, 1000
    if d.coords == "px28":
        return round(WIDTH / 28) * 28, round(HEIGHT / 28) * 28
    return WIDTH, HEIGHT


def pixel(d, xy):
    """Returns ([x, y] in pixels, exact) of two numbers in the dialect's space."""
    out, exact = [], True
    if d.coords == "norm1" and not any(v > 1 for v in xy):
        w, h = 1, 1
    else:
        w, h = extent(d)
        exact = d.coords != "norm1"
    if d.coords == "norm1000" and all(0 <= v <= 1 for v in xy) and any(0 < v < 1 for v in xy):
        w, h, exact = 1, 1, False  # fractions of the screen
    for v, n, size in zip(xy, (w, h), (WIDTH, HEIGHT)):
        if isinstance(v, float) and n != 1:
            exact = False
            if 0 < v < 1:
                raise Unclear("a fraction where whole numbers are asked for")
            v = math.floor(v + 0.5) if v != int(v) else int(v)
        if v < -0.01 * n or v > 1.01 * n:
            raise Unclear(f"{v} is outside of the screen")
        if v < 0 or v > n or (n == size and v == n):
            exact = False
        out.append(min(max(math.floor(v * size / n + 1e-9), 0), size - 1))
    return out, exact


def key(d, name):
    """Returns (keysym name, exact) of one key."""
    if name in SIGNS:
        return SIGNS[name], True
    plain = re.sub(r"[\s_-]", "", name).lower()
    if plain in ("cmd", "command") and d.cmd_is_ctrl:
        return "Control_L", True
    if plain in NAMED:
        return NAMED[plain], True
    if re.fullmatch(r"f([1-9]|1\d|2[0-4])", plain):
        return plain.upper(), True
    if len(name) == 1 and name.isascii() and name.isalnum():
        return name, True
    raise Unclear(f"unknown key {name!r}")


def chord(d, v):
    """Returns (keysyms, exact) of one chord, "ctrl+s" or a list of keys."""
    if isinstance(v, str):
        parts = [v] if len(v) == 1 else [p.strip() for p in re.split(r"\+", v)]
        if v.endswith("++"):
            parts = [p.strip() for p in v[:-2].split("+")] + ["+"]
    elif isinstance(v, list) and v and all(isinstance(k, str) for k in v):
        parts = [p for k in v for p in ([k] if len(k) == 1 else [q.strip() for q in k.split("+")])]
    else:
        raise Unclear(f"not keys: {v!r}")
    if not all(parts):
        raise Unclear(f"not keys: {v!r}")
    got = [key(d, p) for p in parts]
    names = [n for n, _ in got]
    if len(names) > 1 and any(n in MODIFIERS for n in names):
        names = [n.lower() if len(n) == 1 else n for n in names]
    return names, all(e for _, e in got) and len(names) <= 5


def sequence(d, tool, v):
    """Returns ([chord, ...], exact) of a value for keys: words are a chord for UI-TARS, otherwise separate keys.
    """
    if isinstance(v, str) and len(v.split()) > 1:
        if re.sub(r"[\s_-]", "", v).lower() in NAMED:  # "Page Down"
            return [chord(d, v)[0]], False
        v = re.sub(r"(?<=\w),(?=\s)", "", v)  # commas between chords
        words = re.sub(r"\s*\+\s*", "+", v.strip()).split() if d.syntax != "uitars" else v.replace("+", " ").split()
        held = all(key(d, w)[0] in MODIFIERS for w in words[:-1] if "+" not in w)
        if d.syntax == "uitars" or (held and not any("+" in w for w in words)):
            return [chord(d, words)[0]], d.syntax == "uitars"
        return [chord(d, w)[0] for w in words], False
    if tool["name"] == "pyautogui.press" and isinstance(v, (list, tuple)):
        return [chord(d, k)[0] for k in v], True
    names, exact = chord(d, list(v) if isinstance(v, tuple) else v)
    return [names], exact


def text(v):
    """Returns a text that may be typed or shown."""
    if not isinstance(v, str):
        raise Unclear(f"not a text: {v!r}")
    if MARKUP.search(v):
        raise Unclear("markup of a call within a text")
    v = v.replace("\r\n", "\n")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", v):
        raise Unclear("a control character within a text")
    return v


def goals(v):
    """Returns a plan as the text in the record."""
    if not isinstance(v, list) or not 1 <= len(v) <= 20:
        raise Unclear("not a plan")
    lines = []
    for i, g in enumerate(v, 1):
        if not isinstance(g, dict) or set(g) - {"title", "status"} or not isinstance(g.get("title"), str):
            raise Unclear("not a goal")
        status = g.get("status", "todo")
        if status not in ("todo", "running", "done", "failed"):
            raise Unclear("not a status")
        lines.append(f"{i}. {text(g['title'])} [{status}]")
    if sum(line.endswith("[running]") for line in lines) > 1:
        raise Unclear("two running goals")
    return "\n".join(lines)


def value(d, tool, param, own, v):
    """Returns (value, exact) of one argument, in the parameter's type and range."""
    if param == "ignored":
        return v, True
    if param in ("element", "text"):
        return text(v), True
    if param in ("point", "point2"):
        return pair(v)
    if param in ("x", "y", "x2", "y2"):
        if isinstance(v, (list, tuple)) and len(v) == 2:  # for a span, its centre
            low, high = number(v[0])[0], number(v[1])[0]
            if high < low:
                raise Unclear("a span that ends before it begins")
            return (low + high) / 2, False
        return number(v)
    if param in ("keys", "key"):
        return sequence(d, tool, v)
    if param in ("hold", "tap"):
        if v == [] and param == "hold" and tool["kind"] != "hold_and_tap":
            return None, False
        names, exact = chord(d, v)
        if param == "hold" and len(names) > 3:
            raise Unclear("more than three keys held")
        return names, exact
    if param in ("press_enter", "overwrite", "at_end"):
        if not isinstance(v, bool):
            raise Unclear(f"neither true nor false: {v!r}")
        return v, True
    if param in WORDS:
        words = own.get("values", WORDS[param]).split("|")
        if not isinstance(v, str) or v.lower() not in WORDS[param].split("|"):
            raise Unclear(f"not one of {words}: {v!r}")
        return v.lower(), v in words
    if param == "goals":
        return goals(v), True
    if param == "path":
        if not isinstance(v, list) or len(v) < 2:
            raise Unclear("not a path")
        pts = [pair(p) for p in v]
        return [p for p, _ in pts], all(isinstance(p, dict) for p in v)
    if param == "region":
        if not isinstance(v, list) or len(v) != 4:
            raise Unclear("not a region")
        return [number(n)[0] for n in v], True
    n, exact = number(v)
    low, high = RANGES[param]
    low, high = own.get("min", low), own.get("max", high)
    if not low <= n <= high:
        raise Unclear(f"{own['name']} = {n} is not from {low} to {high}")
    if param != "seconds" and n != int(n):
        return math.floor(n + 0.5), False
    return n, exact


def collect(d, tool, given):
    """Returns ({parameter: value}, exact) of the arguments of a call."""
    got, exact, seen = dict(tool.get("with", {})), True, set()
    for arg in tool.get("args", []):
        name, param, aliases, needed, default, own = uses(tool, arg)
        names = [n for n in [name] + aliases if n in given]
        seen.update(names)
        names = [n for n in names if given[n] is not None] or names[:1]
        if len(names) > 1:
            raise Unclear(f"'{name}' is given twice")
        if not names or given[names[0]] is None:
            if needed:
                raise Unclear(f"'{tool['name']}' needs '{name}'")
            exact = exact and not names
            if default is not None and param not in got:
                got[param] = [default] if param in ("keys", "key") else default
            continue
        v, ok = value(d, tool, param, own, given[names[0]])
        exact = exact and ok and names[0] == name and not own.get("hidden")
        if param != "ignored":
            got[param] = v
    unknown = [k for k in given if k not in seen]
    if d.name == "gemini":  # further parameters of Gemini's functions, which do not affect the action
        unknown = [k for k in unknown if k != "safety_decision" and not (k == "intent" and isinstance(given[k], str))]
    if any(given[k] is not None for k in unknown):
        raise Unclear(f"'{tool['name']}' takes no {unknown}")
    return got, exact and not unknown


def wheel(got):
    """Returns (dx, dy) in wheel clicks; 100 pixels are a click, rounded up."""
    clicks = lambda px: int(math.copysign(math.ceil(abs(px) / 100), px)) if px else 0
    if "scroll_x" in got or "scroll_y" in got or "scroll_up" in got:
        up = got.get("scroll_up")
        return clicks(got.get("scroll_x", 0)), clicks(-up) if up is not None else clicks(got.get("scroll_y", 0))
    n = clicks(got["distance"]) if got.get("distance") is not None else got.get("amount", 5)
    return {"up": (0, -n), "down": (0, n), "left": (-n, 0), "right": (n, 0)}[got["direction"]]


def places(d, got, out):
    """Adds the points of a call to the action; returns whether they have the requested form."""
    exact, n = True, []
    for a, b, whole in (("x", "y", "point"), ("x2", "y2", "point2")):
        if (got.get(a) is None) != (got.get(b) is None):
            raise Unclear("half of a place")
        xy = got.get(whole) or ([got[a], got[b]] if got.get(a) is not None else None)
        if xy:
            (out[a], out[b]), ok = pixel(d, xy)
            exact, n = exact and ok, n + [int(v) if float(v).is_integer() else v for v in xy]
    if n and "x" in out:
        out["n"] = n
    if got.get("path"):
        pts = [pixel(d, p) for p in got["path"]]
        exact = exact and all(ok for _, ok in pts)
        (out["x"], out["y"]), (out["x2"], out["y2"]) = pts[0][0], pts[-1][0]
        out["path"] = [p for p, _ in pts]
        out["n"] = [int(v) if float(v).is_integer() else v for v in got["path"][0] + got["path"][-1]]
    return exact


def presses(chords, repeat):
    """Returns the actions of chords in sequence; equal ones become one, repeated up to 20 times."""
    out = []
    for k in chords:
        if out and out[-1][0] == k:
            out[-1][1] += repeat
        else:
            out.append([k, repeat])
    return [{"kind": "key", "count": min(20, n - at), "keys": k} for k, n in out for at in range(0, n, 20)]


def bind(d, name, given):
    """Returns ([action, ...], exact) of a call; raises Unclear if it states none that may be performed."""
    tool, exact = d.tool(name)
    got, ok = collect(d, tool, given)
    kind, out, exact = tool["kind"], {}, exact and ok
    exact = places(d, got, out) and exact
    if got.get("element"):
        out["element"] = got["element"]
    if kind == "hold_and_tap" and tool["name"] == "hold_key":
        keys = got["hold"]
        return (
            [{"kind": "key_down", "keys": [k]} for k in keys]
            + [{"kind": "wait", **({"ms": round(got["seconds"] * 1000)} if got["seconds"] else {})}]
            + [{"kind": "key_up", "keys": [k]} for k in reversed(keys)]
        ), exact
    if kind == "key":
        chords = got.get("keys") or got.get("key")
        if len(chords) == 1 and len(chords[0]) > 1 and len(set(chords[0])) == 1:
            chords = [[k] for k in chords[0]]  # the same key several times
        return presses(chords, got.get("repeat", 1)), exact and len(chords) == 1
    if kind in ("key_down", "key_up"):
        if len(got["key"]) != 1 or len(got["key"][0]) != 1:
            raise Unclear("one key was expected")
        out["keys"] = got["key"][0]
    if kind in ("click", "drag", "mouse_down", "mouse_up"):
        out["button"] = {"wheel": "middle"}.get(got.get("button", "left"), got.get("button", "left"))
    if kind == "click":
        out["count"] = got.get("count", 1)
    if kind in ("click", "drag", "scroll") and got.get("hold"):
        out["hold"] = got["hold"]
    if kind == "scroll":
        out["dx"], out["dy"] = wheel(got)
    if kind == "type":
        out.update(text=got["text"], press_enter=got.get("press_enter", False), overwrite=got.get("overwrite", False))
        if got.get("at_end"):
            out["at_end"] = True
    if kind == "hold_and_tap":
        out.update(keys=got["hold"] + got["tap"], nhold=len(got["hold"]))
    if kind == "wait":
        out["ms"] = round(got["seconds"] * 1000)
    if kind in ("answer", "infeasible", "ask", "goto"):
        out["text"] = got.get("text") or ""
    if kind == "goto" and "\n" in out["text"]:
        raise Unclear("an address of several lines")
    if kind == "plan":
        out["text"] = got["goals"]
    if kind == "answer" and (got.get("status") == "failure" or "[TASK=INFEASIBLE]" in out["text"]):
        kind = "infeasible"
    if kind == "zoom":
        (x, y), _ = pixel(d, got["region"][:2])
        (x2, y2), _ = pixel(d, got["region"][2:])
        out.update(x=x, y=y, x2=x2, y2=y2, n=got["region"])
    return [{"kind": kind, **out}], exact
