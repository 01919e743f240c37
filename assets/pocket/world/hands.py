"""Hands that do what an oracle says: by events of the debugging socket, or by XTEST on an X server.

Design.  Both take the same actions, in CSS pixels of the page.  The first are quick and need no display; the
second are what a person's hands are to the browser, so that nothing passes the proof that only a debugger can
do.  Typed characters are single keys in both; `write` clicks, selects all and types, `append` clicks, goes to
the end and types.
"""

import time

from Xlib import X, XK, display as xdisplay
from Xlib.ext import xtest

DRAG_STEP = 3  # CSS pixels between two places of a drag
NAMES = {
    "enter": ("Enter", 13, "\r"),
    "tab": ("Tab", 9, ""),
    "escape": ("Escape", 27, ""),
    "backspace": ("Backspace", 8, ""),
    "delete": ("Delete", 46, ""),
    "space": (" ", 32, " "),
    "end": ("End", 35, ""),
    "home": ("Home", 36, ""),
    "pageup": ("PageUp", 33, ""),
    "pagedown": ("PageDown", 34, ""),
    "left": ("ArrowLeft", 37, ""),
    "up": ("ArrowUp", 38, ""),
    "right": ("ArrowRight", 39, ""),
    "down": ("ArrowDown", 40, ""),
}
MODIFIERS = {
    "alt": ("Alt", 18, 1),
    "ctrl": ("Control", 17, 2),
    "super": ("Meta", 91, 4),
    "shift": ("Shift", 16, 8),
}
PUNCTUATION = {
    ";": 186,
    ":": 186,
    "=": 187,
    "+": 187,
    ",": 188,
    "<": 188,
    "-": 189,
    "_": 189,
    ".": 190,
    ">": 190,
    "/": 191,
    "?": 191,
    "`": 192,
    "~": 192,
    "[": 219,
    "{": 219,
    "\\": 220,
    "|": 220,
    "]": 221,
    "}": 221,
    "'": 222,
    '"': 222,
    " ": 32,
    ")": 48,
    "!": 49,
    "@": 50,
    "#": 51,
    "$": 52,
    "%": 53,
    "^": 54,
    "&": 55,
    "*": 56,
    "(": 57,
}
NOTCH = 120  # CSS pixels that a notch of an X wheel scrolls, at most a view
COMMANDS = {"ctrl+a": "selectAll", "ctrl+c": "copy", "ctrl+v": "paste", "ctrl+x": "cut", "ctrl+z": "undo"}


def along(start, end):
    """Places from start to end, small steps apart, the end among them."""
    (x0, y0), (x1, y1) = start, end
    n = max(2, round(max(abs(x1 - x0), abs(y1 - y0)) / DRAG_STEP))
    return [(x0 + (x1 - x0) * k / n, y0 + (y1 - y0) * k / n) for k in range(1, n + 1)]


class Hands:
    """The verbs in terms of move, press, release, chord, type and wheel."""

    def do(self, a):
        verb = a["verb"]
        if verb in ("click", "double", "write", "append"):
            self.click(a["x"], a["y"], 2 if verb == "double" else 1, a.get("hold"))
        if verb == "hover":
            self.move(a["x"], a["y"])
        elif verb == "write":
            self.chord("ctrl+a")
            self.type(a["text"])
        elif verb == "append":
            self.chord("end")
            self.type(a["text"])
        elif verb == "key":
            self.chord(a["keys"])
        elif verb == "scroll":
            self.wheel(a["x"], a["y"], a["direction"], a["amount"], a["box"][3])
        elif verb == "drag":
            self.drag((a["x"], a["y"]), (a["to"]["x"], a["to"]["y"]))
        elif verb == "wait":
            time.sleep(a["seconds"])

    def drag(self, start, end):
        self.move(*start)
        self.press()
        for x, y in along(start, end):
            self.move(x, y)
        self.release()


class DevToolsHands(Hands):
    def __init__(self, browser):
        self.browser, self.at, self.down = browser, (0, 0), False

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
        for count in range(1, times + 1):
            held = MODIFIERS[hold][2] if hold else 0
            self.press(count, held)
            self.release(count, held)

    def _key(self, name, code, text, held=0, commands=()):
        send = self.browser.send
        last = send(
            "Input.dispatchKeyEvent",
            type="keyDown" if text or commands else "rawKeyDown",
            key=name,
            text=text,
            windowsVirtualKeyCode=code,
            modifiers=held,
            commands=list(commands),
        )
        self.browser.answer(last)
        self.browser.call(
            "Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code, modifiers=held
        )

    def chord(self, keys):
        *held, last = keys.split("+")
        bits = sum(MODIFIERS[m][2] for m in held)
        commands = [COMMANDS[keys]] if keys in COMMANDS else []
        for m in held:
            self.browser.call(
                "Input.dispatchKeyEvent",
                type="rawKeyDown",
                key=MODIFIERS[m][0],
                windowsVirtualKeyCode=MODIFIERS[m][1],
                modifiers=bits,
            )
        name, code, text = NAMES.get(last, (last, ord(last.upper()[0]), "" if held else last))
        self._key(name, code, text, bits, commands)
        for m in held:
            self.browser.call(
                "Input.dispatchKeyEvent",
                type="keyUp",
                key=MODIFIERS[m][0],
                windowsVirtualKeyCode=MODIFIERS[m][1],
            )

    def type(self, text):
        for c in text:
            code = PUNCTUATION.get(c) or (ord(c.upper()) if c.isascii() and c.isalnum() else 0)
            self._key(c, code, c, MODIFIERS["shift"][2] if c.isupper() else 0)

    def wheel(self, x, y, direction, amount, view):
        self.move(x, y)
        delta = min(NOTCH, view) * amount * (1 if direction in ("down", "right") else -1)
        sideways = direction in ("left", "right")
        self._mouse("mouseWheel", deltaX=delta if sideways else 0, deltaY=0 if sideways else delta)


class XHands(Hands):
    """XTEST on a display that the browser fills: a CSS pixel is `scale` pixels of the screen."""

    PAUSE = 0.004
    BUTTONS = {"up": 4, "down": 5, "left": 6, "right": 7}
    SYMS = {
        "enter": "Return",
        "escape": "Escape",
        "backspace": "BackSpace",
        "pageup": "Prior",
        "pagedown": "Next",
        "ctrl": "Control_L",
        "shift": "Shift_L",
        "alt": "Alt_L",
        "super": "Super_L",
    }

    def __init__(self, name, scale):
        self.display, self.scale = xdisplay.Display(name), scale
        self.spare = None

    def _fake(self, kind, detail=0, x=0, y=0):
        xtest.fake_input(self.display, kind, detail, x=x, y=y)
        self.display.sync()
        time.sleep(self.PAUSE)

    def move(self, x, y):
        self._fake(X.MotionNotify, 0, round(x * self.scale), round(y * self.scale))

    def press(self, button=1):
        self._fake(X.ButtonPress, button)

    def release(self, button=1):
        self._fake(X.ButtonRelease, button)

    def click(self, x, y, times=1, hold=None):
        self.move(x, y)
        if hold:
            self._fake(X.KeyPress, self._code(hold))
        for _ in range(times):
            self.press()
            time.sleep(0.02)
            self.release()
        if hold:
            self._fake(X.KeyRelease, self._code(hold))
        time.sleep(0.02)

    def drag(self, start, end):
        """A place for each frame of the browser, which would otherwise see some of them only."""
        self.move(*start)
        time.sleep(0.05)
        self.press()
        for x, y in along(start, end):
            self.move(x, y)
            time.sleep(0.018)
        time.sleep(0.05)
        self.release()

    def _code(self, name):
        sym = self.SYMS.get(name) or (name if len(name) == 1 else name.capitalize())
        return self.display.keysym_to_keycode(XK.string_to_keysym(sym) or ord(sym))

    def chord(self, keys):
        codes = [self._code(k) for k in keys.split("+")]
        for code in codes:
            self._fake(X.KeyPress, code)
        for code in reversed(codes):
            self._fake(X.KeyRelease, code)

    def _keysym(self, c):
        return ord(c) if ord(c) < 256 else 0x1000000 | ord(c)

    def type(self, text):
        for c in text:
            sym = self._keysym(c)
            places = sorted(
                (index, code) for code, index in self.display.keysym_to_keycodes(sym) if index < 2
            )
            index, code = places[0] if places else (0, self._borrow(sym))
            shift = self._code("shift")
            if index == 1:
                self._fake(X.KeyPress, shift)
            self._fake(X.KeyPress, code)
            self._fake(X.KeyRelease, code)
            if index == 1:
                self._fake(X.KeyRelease, shift)

    def _borrow(self, sym):
        """A key that stands for nothing is given the character, and the browser time to hear of it."""
        if self.spare is None:
            first, count = (
                self.display.display.info.min_keycode,
                255 - self.display.display.info.min_keycode + 1,
            )
            rows = self.display.get_keyboard_mapping(first, count)
            self.spare = next(first + k for k in range(count - 1, 0, -1) if not any(rows[k]))
        self.display.change_keyboard_mapping(self.spare, [[sym] * 2])
        self.display.sync()
        time.sleep(0.2)
        return self.spare

    def wheel(self, x, y, direction, amount, view):
        self.move(x, y)
        for _ in range(amount):
            self.press(self.BUTTONS[direction])
            self.release(self.BUTTONS[direction])
            time.sleep(0.03)
