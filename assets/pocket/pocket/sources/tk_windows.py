"""Tk windows with labels, as a program of the system's Python (python3-tk, needs a display).

    /usr/bin/python3 tk_windows.py FONT SCALE DARK < plans > answers

Plans are those of gtk_windows.py. A window without a frame is placed in the corner of the display, where
toolkit.py reads its pixels: an answer has `at` instead of bytes. Fields, text and lists report the boxes of
their characters (bbox); the text of labels and buttons is centred and measured in their font. Long text is
a text widget, so its lines are known.
"""

import json
import sys
import tkinter as tk
from tkinter import font as tkfont
from tkinter import ttk

ON, OFF, DISABLED, SELECTED = 1, 2, 4, 16


class Window:
    def __init__(self, root, font, colours):
        self.root, self.font, self.colours = root, font, colours
        self.letters, self.elements, self.line, self.word, self.later = [], [], 0, 0, []

    def box(self, w):
        x, y = w.winfo_rootx() - self.root.winfo_rootx(), w.winfo_rooty() - self.root.winfo_rooty()
        return [x, y, x + w.winfo_width(), y + w.winfo_height()]

    def text(self, text, left, top, bottom, right=9999):
        size = self.font.metrics("linespace")
        top = (top + bottom - size) / 2
        self.line += 1
        self.word += 1
        for k, ch in enumerate(text):
            if ch.isspace():
                self.word += 1
                continue
            x0, x1 = left + self.font.measure(text[:k]), left + self.font.measure(text[: k + 1])
            if (x0 + x1) / 2 < right:
                self.letters.append([x0, top, x1, top + size, ord(ch), self.line, self.word])
        self.word += 1

    def middle(self, w, text):
        b = self.box(w)
        self.text(text, (b[0] + b[2] - self.font.measure(text)) / 2, b[1], b[3])

    def characters(self, w, text, index):
        """Adds the letters of a field or text by the widget's own boxes."""
        b, last = self.box(w), None
        for k, ch in enumerate(text):
            r = w.bbox(index(k))
            if ch.isspace() or not r:
                self.word += 1
                continue
            if r[1] != last:
                self.line, self.word, last = self.line + 1, self.word + 1, r[1]
            x, y = b[0] + r[0], b[1] + r[1]
            if x + r[2] / 2 < b[2] - 2 and y + r[3] / 2 < b[3] - 1:
                self.letters.append([x, y, x + r[2], y + r[3], ord(ch), self.line, self.word])
        self.word += 1

    def element(self, w, kind, state=0, name="", box=None):
        self.elements.append([*(box or self.box(w)), kind, state, name])

    # ---- widgets: built first, labels added when the layout is final

    def make(self, parent, kind, *a):
        back, ink, field = self.colours
        plain = dict(bg=back, fg=ink, font=self.font, highlightbackground=back)
        if kind == "label" and len(a[0]) <= 40:
            w = tk.Label(parent, text=a[0], **plain)
            self.later.append(lambda: self.middle(w, a[0]))
        elif kind == "label":
            look = dict(relief="flat", highlightthickness=0, bg=back, fg=ink, font=self.font)
            w = tk.Text(parent, width=40, height=-(-len(a[0]) // 34), wrap="word", **look)
            w.insert("1.0", a[0])
            self.later.append(lambda: self.characters(w, a[0], lambda k: f"1.{k}"))
        elif kind == "link":
            w = tk.Label(parent, text=a[0], bg=back, fg="#2a6fdb", font=self.font, cursor="hand2")
            self.later.append(lambda: (self.middle(w, a[0]), self.element(w, "link", 0, a[0])))
        elif kind == "button":
            off, state = a[1] == "disabled", DISABLED if a[1] == "disabled" else 0
            default = "active" if a[1] == "suggested" else "normal"
            w = tk.Button(parent, text=a[0], state="disabled" if off else "normal", default=default, **plain)
            self.later.append(lambda: (self.middle(w, a[0]), self.element(w, "button", state, a[0])))
        elif kind in ("check", "radio"):
            w = self.mark(parent, kind, a[0], a[1], plain)
        elif kind == "switch":
            w = self.mark(parent, "check", "", a[0], plain)
        else:
            w = self.make_field(parent, kind, *a)
        return w

    def make_field(self, parent, kind, *a):
        """Builds a field or a container."""
        back, ink, field = self.colours
        if kind == "entry":
            w = tk.Entry(parent, width=a[1], bg=field, fg=ink, font=self.font)
            w.insert(0, a[0])
            self.later.append(lambda: (self.entry(w, a[0]), self.element(w, "field")))
        elif kind == "spin":
            w = tk.Spinbox(parent, from_=0, to=9999, width=6, bg=field, fg=ink, font=self.font)
            w.delete(0, "end")
            w.insert(0, str(a[0]))
            self.later.append(lambda: (self.characters(w, str(a[0]), lambda k: k), self.element(w, "field")))
        elif kind == "text":
            w = tk.Text(parent, width=26, height=3, wrap="word", bg=field, fg=ink, font=self.font)
            w.insert("1.0", a[0])
            self.later.append(lambda: (self.characters(w, a[0], lambda k: f"1.{k}"), self.element(w, "area")))
        elif kind == "scale":
            w = tk.Scale(parent, orient="horizontal", showvalue=False, length=140, bg=back)
            w.set(a[0])
            self.later.append(lambda: self.element(w, "slider"))
        elif kind == "combo":
            w = ttk.Combobox(parent, values=a[0], width=max(map(len, a[0])) + 2, font=self.font)
            w.current(a[1])
            self.later.append(lambda: (self.entry(w, a[0][a[1]]), self.element(w, "select", 0, a[0][a[1]])))
        elif kind == "list":
            w = tk.Listbox(parent, height=len(a[0]), bg=field, fg=ink, font=self.font)
            for t in a[0]:
                w.insert("end", t)
            w.selection_set(a[1])
            self.later.append(lambda: self.rows_of(w, a[0], a[1]))
        elif kind == "frame":
            w = tk.LabelFrame(parent, text=a[0], bg=back, fg=ink, font=self.font)
            self.column(w, a[1])
        elif kind == "tabs":
            # ttk does not report the position of a tab's text
            w = tk.Frame(parent, bg=back, bd=1, relief="sunken")
            self.column(w, a[0][0][1])
        return w

    def entry(self, w, text):
        b, first = self.box(w), w.bbox(0)
        right = b[2] - (22 if isinstance(w, ttk.Combobox) else 4)
        self.text(text, b[0] + (first[0] if first else 4), b[1], b[3], right)

    def mark(self, parent, kind, text, on, plain):
        w = (tk.Checkbutton if kind == "check" else tk.Radiobutton)(
            parent, text=text, selectcolor=self.colours[2], **plain
        )
        w.variable = tk.IntVar(value=1 if on else 0)
        w.config(variable=w.variable, **({"value": 1} if kind == "radio" else {}))

        def tell():
            b = self.box(w)
            left = b[2] - 2 - int(str(w.cget("padx"))) - int(str(w.cget("bd"))) - self.font.measure(text)
            self.text(text, left, b[1], b[3])
            size, x, y = min(b[3] - b[1] - 4, max(8, left - b[0] - 6)), b[0] + 4, (b[1] + b[3]) / 2
            self.element(w, kind, ON if on else OFF, text, [x, y - size / 2, x + size, y + size / 2])

        self.later.append(tell)
        return w

    def rows_of(self, w, names, on):
        b = self.box(w)
        for k, t in enumerate(names):
            r = w.bbox(k)
            if r:
                top, bottom = b[1] + r[1], b[1] + r[1] + r[3]
                self.text(t, b[0] + r[0], top, bottom, b[2] - 2)
                self.element(w, "item", SELECTED if k == on else 0, t, [b[0] + 2, top, b[2] - 2, bottom])

    def column(self, parent, rows):
        for row in rows:
            line = tk.Frame(parent, bg=self.colours[0])
            for widget in row:
                self.make(line, *widget).pack(side="left", padx=4)
            line.pack(anchor="w", padx=8, pady=3)

    def answer(self):
        for tell in self.later:
            tell()
        size, at = self.box(self.root)[2:], [self.root.winfo_rootx(), self.root.winfo_rooty()]
        return {"letters": self.letters, "elements": self.elements, "size": size, "at": at}


def main():
    family, size = sys.argv[1].rsplit(" ", 1)
    root = tk.Tk()
    root.withdraw()
    font = tkfont.Font(family=family, size=-round(float(size) * float(sys.argv[2]) * 96 / 72))
    if font.actual("family") != family:
        raise RuntimeError(f"{family} is drawn as {font.actual('family')}")
    colours = ("#2e2e2e", "#e8e8e8", "#1c1c1c") if sys.argv[3] == "1" else ("#d9d9d9", "#000000", "#ffffff")
    old = None
    for text in sys.stdin:
        plan = json.loads(text)
        top = tk.Toplevel(root, bg=colours[0])
        top.overrideredirect(True)
        top.geometry("+0+0")
        window = Window(top, font, colours)
        window.column(top, plan["rows"])
        for _ in range(3):
            top.update()
        if old:
            old.destroy()
            top.update()
        old = top
        sys.stdout.write(json.dumps(window.answer()) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
