"""Writes the table of key names actions/key_names.c, and the lists of tests/cases/keys with which t_keys compares it.

    python make_keys.py table                  from ALIASES below and the headers of X
    python make_keys.py lists PYAUTOGUI LAYOUT  from the source folder of PyAutoGUI 0.9.54 and Playwright's
                                               packages/playwright-core/src/server/usKeyboardLayout.ts
    python make_keys.py check PYAUTOGUI LAYOUT  exits with 1 if a file would change

The lists do not use ALIASES: PyAutoGUI's names are those of its own X11 module, or are named by their virtual
key; Playwright's by the character that the layout gives; X's by the numbers of the headers.
"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
HEADERS = "/usr/include/X11"

# Names in lower case without "_", "-" and spaces, which the parser of names removes.
ALIASES = """
Control_L: ctrl control ctl ctrlleft controlleft leftctrl leftcontrol lctrl lcontrol ctrll primary controlormeta ⌃
Control_R: ctrlright controlright rightctrl rightcontrol rctrl rcontrol ctrlr
Shift_L: shift shiftleft leftshift lshift shiftl ⇧
Shift_R: shiftright rightshift rshift shiftr
Alt_L: alt altleft leftalt lalt altl option opt optionleft leftoption loption ⌥
Alt_R: altright rightalt ralt altr optionright rightoption roption
ISO_Level3_Shift: altgr altgraph level3shift
Super_L: super win windows meta cmd command os superleft winleft windowsleft metaleft cmdleft commandleft osleft leftsuper
  leftwin leftwindows leftmeta leftcmd leftcommand lsuper lwin lmeta lcmd lcommand cmdl winl superkey winkey windowskey
  commandkey ⌘
Super_R: superright winright windowsright metaright cmdright commandright osright rightsuper rightwin rightwindows
  rightmeta rightcmd rightcommand rsuper rwin rmeta rcmd rcommand cmdr winr
Hyper_L: hyper hyperleft
Hyper_R: hyperright
XF86Fn: fn function
Return: enter return ret cr newline linefeed carriagereturn ⏎ ↵ ↩
KP_Enter: kpenter numpadenter numenter keypadenter enternumpad ⌤
Escape: esc escape ⎋
Tab: tab ⇥
BackSpace: backspace bksp bs ⌫
Delete: delete del forwarddelete fwddelete deleteforward ⌦
Insert: insert ins
space: space spacebar spc ␣
Home: home ↖
End: end ↘
Page_Up: pageup pgup prior ⇞
Page_Down: pagedown pgdown pgdn next ⇟
Up: up arrowup uparrow upkey ↑
Down: down arrowdown downarrow downkey ↓
Left: left arrowleft leftarrow leftkey ←
Right: right arrowright rightarrow rightkey →
Caps_Lock: capslock caps ⇪
Num_Lock: numlock
Scroll_Lock: scrolllock scrolllk scrlk
Print: print printscreen printscr prtsc prtscr prntscrn prtscn prntscr printscrn snapshot
Sys_Req: sysrq sysreq
Pause: pause pausebreak
Break: break
Menu: menu apps app appskey menukey contextmenu context application
Cancel: cancel
Clear: clear numpadclear kpclear ⌧
Help: help
Select: select
Execute: execute
Find: find
Undo: undo
Redo: redo again
Begin: begin
Mode_switch: modechange modeswitch
Kanji: kanji kanjimode
Kana_Lock: kana kanamode
Hangul: hangul hanguel hangulmode lang1
Hangul_Hanja: hanja hanjamode lang2
Hangul_Jeonja: junja junjamode
Hangul_End: final finalmode
Henkan: convert
Muhenkan: nonconvert
Hiragana_Katakana: hiraganakatakana
Katakana: lang3
Hiragana: lang4
Zenkaku_Hankaku: zenkakuhankaku lang5
Eisu_toggle: alphanumeric eisu
Codeinput: codeinput
Multi_key: compose
yen: yen intlyen
XF86OK: accept ok
KP_Add: add numpadadd kpplus numadd numplus numpadplus
KP_Subtract: subtract numpadsubtract kpminus numsubtract numminus numpadminus
KP_Multiply: multiply numpadmultiply nummultiply numpadstar
KP_Divide: divide numpaddivide numdivide numpadslash
KP_Decimal: decimal numpaddecimal numdecimal numpaddot numpadperiod
KP_Separator: separator numpadcomma numpadseparator
KP_Equal: numpadequal numpadequals kpequals
KP_0: num0 numpad0
KP_1: num1 numpad1
KP_2: num2 numpad2
KP_3: num3 numpad3
KP_4: num4 numpad4
KP_5: num5 numpad5
KP_6: num6 numpad6
KP_7: num7 numpad7
KP_8: num8 numpad8
KP_9: num9 numpad9
numbersign: hash pound numpadhash
asterisk: asterisk star
plus: plus
minus: minus hyphen dash
underscore: underscore
equal: equal equals
comma: comma
period: period dot fullstop
slash: slash forwardslash
backslash: backslash intlbackslash
bar: bar pipe verticalbar
semicolon: semicolon
colon: colon
apostrophe: apostrophe quote singlequote quoteright
quotedbl: quotedbl doublequote
grave: grave backquote backtick quoteleft
asciitilde: tilde asciitilde
asciicircum: caret circumflex asciicircum
exclam: exclam exclamation exclamationmark
question: question questionmark
at: at atsign
dollar: dollar
percent: percent
ampersand: ampersand
parenleft: parenleft leftparen
parenright: parenright rightparen
bracketleft: bracketleft leftbracket openbracket
bracketright: bracketright rightbracket closebracket
braceleft: braceleft leftbrace
braceright: braceright rightbrace
less: less lessthan
greater: greater greaterthan
XF86AudioRaiseVolume: volumeup audiovolumeup audioraisevolume mediavolumeup
XF86AudioLowerVolume: volumedown audiovolumedown audiolowervolume mediavolumedown
XF86AudioMute: volumemute mute audiovolumemute audiomute mediavolumemute
XF86AudioPlay: playpause mediaplaypause mediaplay
XF86AudioPause: mediapause
XF86AudioStop: stop mediastop
XF86AudioNext: nexttrack mediatracknext medianexttrack medianext
XF86AudioPrev: prevtrack mediatrackprevious mediaprevioustrack mediaprevious
XF86AudioRecord: mediarecord
XF86AudioRewind: mediarewind
XF86AudioForward: mediafastforward
XF86AudioMicMute: microphonemute microphonemutetoggle
XF86AudioMedia: launchmediaselect mediaselect launchmediaplayer
XF86Eject: eject
XF86Back: browserback
XF86Forward: browserforward
XF86Reload: browserrefresh
XF86Stop: browserstop
XF86Search: browsersearch
XF86Favorites: browserfavorites
XF86HomePage: browserhome
XF86Mail: launchmail
XF86MyComputer: launchapp1 launchapplication1
XF86Calculator: launchapp2 launchapplication2
XF86Sleep: sleep
XF86WakeUp: wakeup
XF86PowerOff: power poweroff
XF86MonBrightnessUp: brightnessup
XF86MonBrightnessDown: brightnessdown
XF86Copy: copy
XF86Cut: cut
XF86Paste: paste
XF86Open: open
XF86Close: close
XF86New: new
XF86Save: save
XF86ZoomIn: zoomin
XF86ZoomOut: zoomout
"""

# Keys of PyAutoGUI that its X11 module lacks, by the virtual key of its Windows module.
VIRTUAL = {
    "VK_CLEAR": "Clear", "VK_KANA": "Kana_Lock", "VK_HANGUEL": "Hangul", "VK_HANGUL": "Hangul",
    "VK_JUNJA": "Hangul_Jeonja", "VK_FINAL": "Hangul_End", "VK_HANJA": "Hangul_Hanja", "VK_KANJI": "Kanji",
    "VK_CONVERT": "Henkan", "VK_NONCONVERT": "Muhenkan", "VK_ACCEPT": "XF86OK", "VK_MODECHANGE": "Mode_switch",
    "VK_SLEEP": "XF86Sleep", "VK_BROWSER_BACK": "XF86Back", "VK_BROWSER_FORWARD": "XF86Forward",
    "VK_BROWSER_REFRESH": "XF86Reload", "VK_BROWSER_STOP": "XF86Stop", "VK_BROWSER_SEARCH": "XF86Search",
    "VK_BROWSER_FAVORITES": "XF86Favorites", "VK_BROWSER_HOME": "XF86HomePage", "VK_VOLUME_MUTE": "XF86AudioMute",
    "VK_VOLUME_DOWN": "XF86AudioLowerVolume", "VK_VOLUME_UP": "XF86AudioRaiseVolume",
    "VK_MEDIA_NEXT_TRACK": "XF86AudioNext", "VK_MEDIA_PREV_TRACK": "XF86AudioPrev", "VK_MEDIA_STOP": "XF86AudioStop",
    "VK_MEDIA_PLAY_PAUSE": "XF86AudioPlay", "VK_LAUNCH_MAIL": "XF86Mail",
    "VK_LAUNCH_MEDIA_SELECT": "XF86AudioMedia", "VK_LAUNCH_APP1": "XF86MyComputer", "VK_LAUNCH_APP2": "XF86Calculator",
}
MAC = {"command": "Super_L", "option": "Alt_L", "optionleft": "Alt_L", "optionright": "Alt_R", "fn": "XF86Fn", "yen": "yen"}

# The named values of KeyboardEvent.key, and of code where Playwright's layout has more than one.
NAMED = {
    "Alt": "Alt_L", "AltGraph": "ISO_Level3_Shift", "Control": "Control_L", "Shift": "Shift_L", "Meta": "Super_L",
    "AltLeft": "Alt_L", "AltRight": "Alt_R", "ControlLeft": "Control_L", "ControlRight": "Control_R",
    "ShiftLeft": "Shift_L", "ShiftRight": "Shift_R", "MetaLeft": "Super_L", "MetaRight": "Super_R",
    "ControlOrMeta": "Control_L", "Enter": "Return", "Backspace": "BackSpace", "PageUp": "Page_Up",
    "PageDown": "Page_Down", "ArrowLeft": "Left", "ArrowRight": "Right", "ArrowUp": "Up", "ArrowDown": "Down",
    "CapsLock": "Caps_Lock", "NumLock": "Num_Lock", "ScrollLock": "Scroll_Lock", "PrintScreen": "Print",
    "ContextMenu": "Menu", "AudioVolumeMute": "XF86AudioMute", "AudioVolumeDown": "XF86AudioLowerVolume",
    "AudioVolumeUp": "XF86AudioRaiseVolume", "MediaTrackNext": "XF86AudioNext", "MediaTrackPrevious": "XF86AudioPrev",
    "MediaPlayPause": "XF86AudioPlay", "NumpadDivide": "KP_Divide", "NumpadMultiply": "KP_Multiply",
    "NumpadSubtract": "KP_Subtract", "NumpadAdd": "KP_Add", "NumpadDecimal": "KP_Decimal", "NumpadEnter": "KP_Enter",
    "Space": "space",
    **{f"Numpad{i}": f"KP_{i}" for i in range(10)},
}

# Names that differ between sources, with the choice.
CONFLICTS = {
    "meta": "Super_L in browsers and Playwright (the choice), Meta_L for xdotool",
    "multiply": "KP_Multiply for PyAutoGUI (the choice), the sign U+00D7 for X",
    "linefeed": "Return (the choice), the keysym Linefeed for X, which no keyboard has",
    "hyphen": "minus (the choice), the soft hyphen U+00AD for X",
}


def keysyms():
    """Name -> number, of keysymdef.h and XF86keysym.h."""
    out = {}
    with open(os.path.join(HEADERS, "keysymdef.h"), encoding="utf-8") as f:
        for name, value in re.findall(r"^#define XK_(\w+)\s+(0x[0-9a-fA-F]+)", f.read(), re.M):
            out.setdefault(name, int(value, 16))
    with open(os.path.join(HEADERS, "XF86keysym.h"), encoding="utf-8") as f:
        text = f.read()
    for name, value in re.findall(r"^#define XF86XK_(\w+)\s+(0x[0-9a-fA-F]+)", text, re.M):
        out["XF86" + name] = int(value, 16)
    for name, value in re.findall(r"^#define XF86XK_(\w+)\s+_EVDEVK\((0x[0-9a-fA-F]+)\)", text, re.M):
        out["XF86" + name] = 0x10081000 + int(value, 16)
    out.setdefault("XF86OK", 0x10081160)
    out.setdefault("XF86Fn", 0x100811d0)
    return out


def is_key(value):
    """Returns whether a keysym is Latin-1 or a key without a character."""
    return value <= 0xff or 0xfd00 <= value <= 0xffff or value >= 0x10080000


def plain(name):
    return re.sub(r"[-_ ]", "", name).lower()


def table():
    known, out = keysyms(), {}
    for line in ALIASES.replace("\n  ", " ").strip().splitlines():
        target, names = line.split(":")
        for name in names.split():
            assert name not in out, name
            out[name] = known[target]
    for i in range(10):
        out[f"digit{i}"] = ord("0") + i
    for c in "abcdefghijklmnopqrstuvwxyz":
        out[f"key{c}"] = ord(c)
    first = {}
    for name, value in known.items():  # if case matters, XStringToKeysym decides
        first.setdefault(plain(name), set()).add(value)
    for name, value in known.items():
        p = plain(name)
        if len(p) > 1 and is_key(value) and len(first[p]) == 1:
            out.setdefault(p, value)
            assert out[p] == value or p in CONFLICTS, (name, hex(out[p]), hex(value))
    cells = [f'{{"{name}", 0x{value:x}}},' for name, value in sorted(out.items())]
    lines, line = [], "   "
    for cell in cells:
        if len((line + " " + cell).encode()) > 108:
            lines.append(line)
            line = "   "
        line += " " + cell
    lines.append(line)
    return ("/* key_names.c - names of keys and their keysyms; written by tests/reference/make_keys.py.\n *\n"
            " * Names are in lower case without \"-\", \"_\" and spaces, in the order of their bytes.\n */\n"
            '#include "actions/keys.h"\n\n/* clang-format off */\nconst struct key_name key_names[] = {\n' +
            "\n".join(lines) + "\n};\n/* clang-format on */\n\n"
            "const int key_names_count = sizeof key_names / sizeof *key_names;\n")


# ---- lists ----------------------------------------------------------------------------------------------------

def spelled(name):
    return name.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def of_char(c, known):
    named = {"\t": "Tab", "\n": "Return", "\r": "Return", " ": "space"}
    if c in named:
        return named[c]
    return next(name for name, value in known.items() if value == ord(c))


def listing(head, rows):
    return head + "".join(f"{spelled(name)}\t{keysym}\n" for name, keysym in rows)


def pyautogui(folder, known):
    def source(name):
        with open(glob.glob(os.path.join(folder, "**", name), recursive=True)[0], encoding="utf-8") as f:
            return f.read()
    names = eval(re.search(r"KEY_NAMES = (\[.*?\n\])", source("__init__.py"), re.S).group(1))
    linux = dict(re.findall(r"'([^']+)':\s+_display.keysym_to_keycode\(Xlib.XK.string_to_keysym\('(\w+)'\)",
                            source("_pyautogui_x11.py")))
    virtual = dict(re.findall(r"'(\w+)': 0x\w+, # (VK_\w+)", source("_pyautogui_win.py")))
    rows = []
    for name in names:
        if len(name) == 1:
            rows.append((name, of_char(name, known)))
        else:
            rows.append((name, linux.get(name) or MAC.get(name) or VIRTUAL[virtual[name]]))
    return listing("# KEYBOARD_KEYS of PyAutoGUI 0.9.54: its X11 module, or the virtual key of its Windows module\n", rows)


def playwright(path, known):
    rows = []
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for name, body in re.findall(r"^  '(\w+)': \{(.*)\}", text, re.M):
        key = eval(re.search(r"'key': ('(?:\\.|[^'])*')", body).group(1))
        shifted = re.search(r"'shiftKey': ('(?:\\.|[^'])*')", body)
        target = NAMED.get(name) or (of_char(key, known) if len(key) == 1 else NAMED.get(key, key))
        rows.append((name, target))
        if not name.startswith("Numpad"):
            rows.append((key, of_char(key, known) if len(key) == 1 else NAMED.get(key, key)))
        if shifted and not name.startswith("Numpad"):
            c = eval(shifted.group(1)).lstrip("\\")
            rows.append((c, of_char(c, known)))
    rows += [("ControlOrMeta", "Control_L"), ("Meta", "Super_L")]
    return listing("# names of Playwright's usKeyboardLayout.ts: codes, keys and shifted keys\n", dict(rows).items())


def xdotool(known):
    rows = [(name, f"0x{value:x}") for name, value in known.items() if plain(name) not in CONFLICTS]
    rows += [("alt", "Alt_L"), ("ctrl", "Control_L"), ("control", "Control_L"), ("super", "Super_L"), ("shift", "Shift_L"),
             ("enter", "Return"), ("return", "Return")]
    keep = [r for r in rows if not r[1].startswith("0x") or is_key(int(r[1], 16))]
    return listing("# keysyms of keysymdef.h and XF86keysym.h (Latin-1, function keys, XF86), and the words of xdotool\n", keep)


def files(command, args):
    if command == "table":
        return {"actions/key_names.c": table()}
    known = keysyms()
    return {"actions/key_names.c": table(), "tests/cases/keys/pyautogui.txt": pyautogui(args[0], known),
            "tests/cases/keys/playwright.txt": playwright(args[1], known), "tests/cases/keys/xdotool.txt": xdotool(known)}


def main():
    command, args = sys.argv[1], sys.argv[2:]
    bad = 0
    for path, text in files(command, args).items():
        full = os.path.join(ROOT, path)
        if command != "check":
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        else:
            with open(full, encoding="utf-8") as f:
                differs = f.read() != text
            bad += differs
            print(f"{path}: {'differs' if differs else 'as committed'}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
