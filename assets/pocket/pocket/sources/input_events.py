"""Executes the actions of an oracle in a page, as input events of the DevTools socket.

Coordinates are CSS pixels of the page. `write` clicks, selects all and types; `append` clicks, moves the
caret to the end and types. Every typed character is one key event.
"""

import time

DRAG_STEP = 3  # CSS pixels between two moves of a drag
NOTCH = 120  # CSS pixels that one notch of the wheel scrolls, at most the height of the view
NAMED_KEYS = {"enter": ("Enter", 13, "\r"), "space": (" ", 32, " ")}  # DevTools name, code, text
NAMED_KEYS |= {n.lower(): (n, c, "") for n, c in dict(Tab=9, Escape=27, Backspace=8, Delete=46).items()}
NAMED_KEYS |= {n.lower(): (n, c, "") for n, c in dict(PageUp=33, PageDown=34, End=35, Home=36).items()}
NAMED_KEYS |= {n.lower(): (f"Arrow{n}", 37 + k, "") for k, n in enumerate(("Left", "Up", "Right", "Down"))}
# DevTools name, code, bit
MODIFIERS = dict(alt=("Alt", 18, 1), ctrl=("Control", 17, 2), super=("Meta", 91, 4), shift=("Shift", 16, 8))
COMMANDS = {"ctrl+a": "selectAll", "ctrl+c": "copy", "ctrl+v": "paste", "ctrl+x": "cut", "ctrl+z": "undo"}
PUNCTUATION = dict(
    zip(";:=+,<-_.>/?`~[{\\|]}'\"", [c for c in (*range(186, 193), *range(219, 223)) for _ in "12"])
)
PUNCTUATION |= {" ": 32} | {c: 48 + k for k, c in enumerate(")!@#$%^&*(")}


def along(start, end):
    """Returns the points of a drag from start to end, about DRAG_STEP apart, end included."""
    (x0, y0), (x1, y1) = start, end
    n = max(2, round(max(abs(x1 - x0), abs(y1 - y0)) / DRAG_STEP))
    return [(x0 + (x1 - x0) * k / n, y0 + (y1 - y0) * k / n) for k in range(1, n + 1)]


class InputEvents:
    """Mouse and keyboard of one page."""

    def __init__(self, browser):
        self.browser, self.at, self.down = browser, (0, 0), False

    def do(self, action):
        """Executes one action (oracles/core.js lists the verbs)."""
        verb = action["verb"]
        if verb in ("click", "double", "write", "append"):
            self.click(action["x"], action["y"], 2 if verb == "double" else 1, action.get("hold"))
        if verb == "hover":
            self.move(action["x"], action["y"])
        elif verb in ("write", "append"):
            self.chord("ctrl+a" if verb == "write" else "end")
            self.type(action["text"])
        elif verb == "key":
            self.chord(action["keys"])
        elif verb == "scroll":
            self.wheel(action["x"], action["y"], action["direction"], action["amount"], action["box"][3])
        elif verb == "drag":
            self.drag((action["x"], action["y"]), (action["to"]["x"], action["to"]["y"]))
        elif verb == "wait":
            time.sleep(action["seconds"])

    def _mouse(self, kind, **more):
        x, y = self.at
        self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def move(self, x, y):
        self.at = x, y
        self._mouse("mouseMoved", button="left" if self.down else "none", buttons=int(self.down))

    def press(self, count=1, modifiers=0):
        self.down = True
        self._mouse("mousePressed", button="left", buttons=1, clickCount=count, modifiers=modifiers)

    def release(self, count=1, modifiers=0):
        self.down = False
        self._mouse("mouseReleased", button="left", buttons=0, clickCount=count, modifiers=modifiers)

    def click(self, x, y, times=1, hold=None):
        self.move(x, y)
        held = MODIFIERS[hold][2] if hold else 0
        for count in range(1, times + 1):
            self.press(count, held)
            self.release(count, held)

    def drag(self, start, end):
        self.move(*start)
        self.press()
        for x, y in along(start, end):
            self.move(x, y)
        self.release()

    def _event(self, kind, name, code, **more):
        self.browser.call("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code, **more)

    def _key(self, name, code, text, held=0, commands=()):
        down = "keyDown" if text or commands else "rawKeyDown"
        self._event(down, name, code, text=text, modifiers=held, commands=list(commands))
        self._event("keyUp", name, code, modifiers=held)

    def chord(self, keys):
        """Presses a key with its modifiers, such as "ctrl+a"."""
        *held, last = keys.split("+")
        bits = sum(MODIFIERS[m][2] for m in held)
        for name, code, _ in (MODIFIERS[m] for m in held):
            self._event("rawKeyDown", name, code, modifiers=bits)
        name, code, text = NAMED_KEYS.get(last, (last, ord(last.upper()[0]), "" if held else last))
        self._key(name, code, text, bits, [COMMANDS[keys]] if keys in COMMANDS else [])
        for name, code, _ in (MODIFIERS[m] for m in held):
            self._event("keyUp", name, code)

    def type(self, text):
        for c in text:
            code = PUNCTUATION.get(c) or (ord(c.upper()) if c.isascii() and c.isalnum() else 0)
            self._key(c, code, c, MODIFIERS["shift"][2] if c.isupper() else 0)

    def wheel(self, x, y, direction, amount, view):
        """Scrolls by `amount` notches; `view` is the height of the scrolled view in CSS pixels."""
        self.move(x, y)
        delta = min(NOTCH, view) * amount * (1 if direction in ("down", "right") else -1)
        sideways = direction in ("left", "right")
        self._mouse("mouseWheel", deltaX=delta if sideways else 0, deltaY=0 if sideways else delta)
