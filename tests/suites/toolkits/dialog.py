#!/usr/bin/python3
"""Configurable dialogs of GTK 3, Qt 5 or Tk: dialog.py gtk|qt|tk DIALOG...

    dialog.py gtk 'title=Draft&text=Keep it?&kind=buttons&labels=Save|Discard' >answer

The last dialog is the active one; `at=X,Y` is a dialog's position.  Kinds: buttons, ticks, options, fields; `labels`
are those of the elements, `buttons` those below them.  The first button press in any of the dialogs ends
the program, which prints the dialog's title and its content on one line:

    Draft: pressed=Save          Where: pressed=OK;chosen=Rome          Who: pressed=OK;Name=Ana;City=Rome

With HOLORUN_BOXES=FILE, the file gets the positions of the active dialog's elements, {label: [x, y]}, once they are stable.
"""
import json
import os
import sys
from urllib.parse import parse_qsl

KINDS = ("buttons", "ticks", "options", "fields")


class Dialog:
    def __init__(self, query):
        q = dict(parse_qsl(query, keep_blank_values=True))
        self.title, self.text, self.kind = q.get("title", "Dialog"), q.get("text", ""), q.get("kind", "buttons")
        if self.kind not in KINDS:
            sys.exit(f"dialog.py: kind '{self.kind}' is none of {', '.join(KINDS)}")
        labels = [l for l in q.get("labels", "").split("|") if l]
        self.things = [] if self.kind == "buttons" else labels
        self.buttons = labels if self.kind == "buttons" else [b for b in q.get("buttons", "").split("|") if b]
        self.at = tuple(int(v) for v in q["at"].split(",")) if "at" in q else None

    def answer(self, pressed, values):
        """`values`: for each element, whether it is on, or its text."""
        parts = [f"pressed={pressed}"]
        if self.kind in ("ticks", "options"):
            name = "ticked" if self.kind == "ticks" else "chosen"
            parts.append(f"{name}=" + ",".join(l for l, on in zip(self.things, values) if on))
        elif self.kind == "fields":
            parts += [f"{l}={v}" for l, v in zip(self.things, values)]
        print(f"{self.title}: {';'.join(parts)}", flush=True)
        os._exit(0)


class Boxes:
    """Writes the positions when six polls, 200 ms apart, agree, because a window manager may move windows late."""

    def __init__(self, look):
        self.look, self.path, self.seen = look, os.environ.get("HOLORUN_BOXES"), []

    def __call__(self):
        """Polls once; returns whether to continue."""
        if not self.path:
            return False
        self.seen.append({label: [x, y] for label, (x, y) in self.look()})
        if any(s != self.seen[-1] for s in self.seen[-6:]) or len(self.seen) < 6:
            return True
        with open(self.path + ".part", "w") as f:
            json.dump(self.seen[-1], f)
        os.replace(self.path + ".part", self.path)
        return False


def gtk(dialogs):
    import gi

    gi.require_version("Gtk", "3.0")
    from gi.repository import GLib, Gtk

    def middle(w):
        _, x, y = w.get_window().get_origin()
        a = w.get_allocation()
        own = w.get_has_window()
        return x + (0 if own else a.x) + a.width // 2, y + (0 if own else a.y) + a.height // 2

    def show(d):
        window = Gtk.Window(title=d.title)
        column = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=10, border_width=16)
        row, things, group = Gtk.Box(spacing=8), [], None
        if d.text:
            column.add(Gtk.Label(label=d.text, xalign=0))
        for label in d.things:
            if d.kind == "fields":
                line, thing = Gtk.Box(spacing=8), Gtk.Entry()
                line.pack_start(Gtk.Label(label=label, xalign=0), False, False, 0)
                line.pack_end(thing, True, True, 0)
                column.add(line)
            else:
                thing = (Gtk.CheckButton(label=label) if d.kind == "ticks" else
                         Gtk.RadioButton.new_with_label_from_widget(group, label))
                column.add(thing)
                group = thing
            things.append((label, thing))
        own = slice(len(d.things))
        values = lambda: [t.get_text() if d.kind == "fields" else t.get_active() for _, t in things[own]]
        for label in d.buttons:
            b = Gtk.Button(label=label)
            b.connect("clicked", lambda _, l=label: d.answer(l, values()))
            row.add(b)
            things.append((label, b))
        column.add(row)
        window.add(column)
        if d.at:
            window.move(*d.at)
        window.show_all()
        return window, things

    windows = [show(d) for d in dialogs]
    window, things = windows[-1]
    GLib.timeout_add(300, lambda: window.present())
    GLib.timeout_add(200, Boxes(lambda: [(l, middle(w)) for l, w in things]))
    Gtk.main()


def qt(dialogs):
    from PyQt5 import QtCore, QtWidgets as W

    app = W.QApplication(["dialog"])

    def show(d):
        window = W.QWidget()
        window.setWindowTitle(d.title)
        column, row, things = W.QVBoxLayout(window), W.QHBoxLayout(), []
        if d.text:
            column.addWidget(W.QLabel(d.text))
        for label in d.things:
            if d.kind == "fields":
                line, thing = W.QHBoxLayout(), W.QLineEdit()
                line.addWidget(W.QLabel(label))
                line.addWidget(thing)
                column.addLayout(line)
            else:
                thing = W.QCheckBox(label) if d.kind == "ticks" else W.QRadioButton(label)
                column.addWidget(thing)
            things.append((label, thing))
        own = slice(len(d.things))
        values = lambda: [t.text() if d.kind == "fields" else t.isChecked() for _, t in things[own]]
        for label in d.buttons:
            b = W.QPushButton(label)
            b.clicked.connect(lambda _, l=label: d.answer(l, values()))
            row.addWidget(b)
            things.append((label, b))
        column.addLayout(row)
        if d.at:
            window.move(*d.at)
        window.show()
        return window, things

    windows = [show(d) for d in dialogs]
    window, things = windows[-1]

    def spot(w):
        # the left end of a checkbox, because its label may be shorter than its cell
        c = w.rect().center()
        p = w.mapToGlobal(QtCore.QPoint(12, c.y()) if isinstance(w, (W.QCheckBox, W.QRadioButton)) else c)
        return p.x(), p.y()

    QtCore.QTimer.singleShot(300, lambda: (window.raise_(), window.activateWindow()))
    boxes, timer = Boxes(lambda: [(l, spot(w)) for l, w in things]), QtCore.QTimer()
    timer.timeout.connect(lambda: boxes() or timer.stop())
    timer.start(200)
    app.exec_()


def tk(dialogs):
    import tkinter

    root = tkinter.Tk()
    root.withdraw()

    def show(d):
        window, things, marks = tkinter.Toplevel(root, padx=14, pady=12), [], []
        window.title(d.title)
        if d.text:
            tkinter.Label(window, text=d.text).pack(anchor="w", pady=4)
        chosen = tkinter.StringVar(window, "\n")  # no label
        for label in d.things:
            if d.kind == "fields":
                line = tkinter.Frame(window)
                tkinter.Label(line, text=label).pack(side="left")
                thing = mark = tkinter.Entry(line, width=22)
                thing.pack(side="left", padx=6)
                line.pack(anchor="w", pady=2)
            elif d.kind == "ticks":
                mark = tkinter.BooleanVar(window)
                thing = tkinter.Checkbutton(window, text=label, variable=mark)
                thing.pack(anchor="w")
            else:
                mark = chosen
                thing = tkinter.Radiobutton(window, text=label, variable=chosen, value=label)
                thing.pack(anchor="w")
            things.append((label, thing))
            marks.append((label, mark))
        values = lambda: [m.get() == l if d.kind == "options" else m.get() for l, m in marks]
        row = tkinter.Frame(window)
        row.pack(anchor="w", pady=8)
        for label in d.buttons:
            b = tkinter.Button(row, text=label, command=lambda l=label: d.answer(l, values()))
            b.pack(side="left", padx=4)
            things.append((label, b))
        if d.at:
            window.geometry("+%d+%d" % d.at)
        return window, things

    windows = [show(d) for d in dialogs]
    window, things = windows[-1]
    middle = lambda w: (w.winfo_rootx() + w.winfo_width() // 2, w.winfo_rooty() + w.winfo_height() // 2)
    root.after(300, lambda: (window.lift(), window.focus_force()))
    boxes = Boxes(lambda: [(l, middle(w)) for l, w in things])
    look = lambda: boxes() and root.after(200, look)
    root.after(200, look)
    root.mainloop()


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("gtk", "qt", "tk"):
        sys.exit("dialog.py: gtk, qt or tk, and at least one dialog, are wanted")
    {"gtk": gtk, "qt": qt, "tk": tk}[sys.argv[1]]([Dialog(q) for q in sys.argv[2:]])


if __name__ == "__main__":
    main()
