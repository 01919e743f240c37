"""The calls of pyautogui that holorun makes, through XTEST: for tests on machines where the package is not there.

It does what the package does on an X server, with its mistake of "<", and passes over keys that it does not know.
"""
import ctypes
import os
import time

FAILSAFE, PAUSE = True, 0.1
_x, _t = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXtst.so.6")
_x.XOpenDisplay.restype = ctypes.c_void_p
_x.XStringToKeysym.restype = ctypes.c_ulong
_x.XKeysymToKeycode.argtypes = [ctypes.c_void_p, ctypes.c_ulong]
_x.XSync.argtypes = [ctypes.c_void_p, ctypes.c_int]
for _call in (_t.XTestFakeKeyEvent, _t.XTestFakeButtonEvent):
    _call.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_ulong]
_t.XTestFakeMotionEvent.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_ulong]
_d = _x.XOpenDisplay(os.environ["DISPLAY"].encode())
_NAMES = {"ctrl": "Control_L", "ctrlright": "Control_R", "shift": "Shift_L", "shiftright": "Shift_R", "alt": "Alt_L",
          "altright": "Alt_R", "winleft": "Super_L", "winright": "Super_R", "enter": "Return", "esc": "Escape", "tab": "Tab",
          "space": "space", "backspace": "BackSpace", "delete": "Delete", "insert": "Insert", "home": "Home", "end": "End",
          "pageup": "Page_Up", "pagedown": "Page_Down", "left": "Left", "right": "Right", "up": "Up", "down": "Down",
          "capslock": "Caps_Lock", "numlock": "Num_Lock", "scrolllock": "Scroll_Lock", "printscreen": "Print", "pause": "Pause",
          "apps": "Menu", "\n": "Return", "\t": "Tab", " ": "space", **{f"f{i}": f"F{i}" for i in range(1, 13)}}
_SHIFTED = set('ABCDEFGHIJKLMNOPQRSTUVWXYZ~!@#$%^&*()_+{}|:"<>?')


def _code(key):
    keysym = _x.XStringToKeysym(_NAMES[key].encode()) if key in _NAMES else ord(key) if len(key) == 1 else 0
    return _x.XKeysymToKeycode(_d, keysym) if keysym else 0


def _send(call, *numbers):
    call(_d, *numbers)
    _x.XSync(_d, 0)


def moveTo(x, y):
    _send(_t.XTestFakeMotionEvent, -1, x, y, 0)


def _button(button, down):
    _send(_t.XTestFakeButtonEvent, {"left": 1, "middle": 2, "right": 3}.get(button, button), down, 0)


def mouseDown(button="left"):
    _button(button, 1)


def mouseUp(button="left"):
    _button(button, 0)


def _wheel(button, n):
    for _ in range(n):
        _button(button, 1)
        _button(button, 0)


def scroll(n):
    _wheel(4 if n > 0 else 5, abs(n))


def hscroll(n):
    _wheel(7 if n > 0 else 6, abs(n))


def keyDown(key):
    if key in _SHIFTED:
        _send(_t.XTestFakeKeyEvent, _code("shift"), 1, 0)
    if _code(key):
        _send(_t.XTestFakeKeyEvent, _code(key), 1, 0)
    if key in _SHIFTED:
        _send(_t.XTestFakeKeyEvent, _code("shift"), 0, 0)


def keyUp(key):
    if _code(key):
        _send(_t.XTestFakeKeyEvent, _code(key), 0, 0)


def hotkey(*keys):
    for key in keys:
        keyDown(key)
    for key in reversed(keys):
        keyUp(key)


def write(text, interval=0):
    for c in text:
        keyDown(c)
        keyUp(c)
        time.sleep(interval)
