#!/usr/bin/env python3
"""A window for reactions.py that covers the screen: a button, a label that it changes, and a square whose colour tells
the state. With *_write there is a field instead, and MS after the last change of its text a list opens. Reports the
state at each press with the pointer.

    reactions_app.py tk|gtk|qt URL [COLOUR ...]
    reactions_app.py gtk_write|qt_write MS URL [COLOUR ...]
    reactions_app.py gtk_stack MS URL [COLOUR ...]     the button shows a page of grey blocks, and MS later a page of text
"""
import sys
import urllib.request

KIND, MS = sys.argv[1], int(sys.argv[2]) if "_" in sys.argv[1] else 0
URL, *COLOURS = sys.argv[3 if MS else 2:]
FIELD, LIST = (500, 100, 200, 30), (350, 350, 200, 150)  # x, y, width, height
state = 0


def report():
    urllib.request.urlopen(f"{URL}/pressed/{state}", data=b"").read()


def tk():
    import tkinter

    root = tkinter.Tk()
    root.overrideredirect(True)
    root.geometry("1000x800+0+0")
    root.configure(bg="white")
    square = tkinter.Frame(root, bg=COLOURS[0], width=24, height=24)
    square.place(x=0, y=0)
    label = tkinter.Label(root, text="waiting", font=("Sans", 40), bg="white")
    label.place(x=200, y=300)

    def react():
        global state
        state = 1
        label.configure(text="finished")
        square.configure(bg=COLOURS[1])

    tkinter.Button(root, text="Start", command=react).place(x=100, y=100, width=200, height=60)
    root.bind("<ButtonPress>", lambda _: report())
    root.mainloop()


def qt():
    from PyQt5 import QtCore, QtWidgets

    app = QtWidgets.QApplication([])

    class Window(QtWidgets.QWidget):
        def eventFilter(self, _, event):
            if event.type() == QtCore.QEvent.MouseButtonPress:
                report()
            return False

        def react(self):
            global state
            state = 1
            label.setText("finished")
            square.setStyleSheet(f"background: {COLOURS[1]}")

    w = Window(None, QtCore.Qt.FramelessWindowHint)
    w.setGeometry(0, 0, 1000, 800)
    w.setStyleSheet("background: white")
    square = QtWidgets.QLabel(w)
    square.setGeometry(0, 0, 24, 24)
    square.setStyleSheet(f"background: {COLOURS[0]}")
    label = QtWidgets.QLabel("waiting", w)
    if MS:
        label.setGeometry(*LIST)
        label.hide()
        timer = QtCore.QTimer(singleShot=True, interval=MS)
        timer.timeout.connect(lambda: (label.show(), w.react()))
        field = QtWidgets.QLineEdit(w)
        field.setGeometry(*FIELD)
        field.textChanged.connect(lambda _: timer.start())
        field.installEventFilter(w)
    else:
        label.setGeometry(200, 300, 400, 80)
        label.setStyleSheet("font-size: 40px")
        button = QtWidgets.QPushButton("Start", w)
        button.setGeometry(100, 100, 200, 60)
        button.pressed.connect(report)
        button.clicked.connect(w.react)
    w.installEventFilter(w)
    w.show()
    app.exec_()


def gtk():
    """The label slides into view; the square changes when it has arrived."""
    import gi

    gi.require_version("Gdk", "3.0")  # imported first, so without this Gdk 4 would be loaded
    gi.require_version("Gtk", "3.0")
    from gi.repository import Gdk, GLib, Gtk

    def paint(widget, colour):
        rgba = Gdk.RGBA()
        rgba.parse(colour)
        widget.override_background_color(Gtk.StateFlags.NORMAL, rgba)

    window = Gtk.Window(decorated=False, default_width=1000, default_height=800)
    window.add_events(Gdk.EventMask.BUTTON_PRESS_MASK)
    fixed = Gtk.Fixed()
    square = Gtk.EventBox(width_request=24, height_request=24)
    revealer = Gtk.Revealer(transition_duration=170, transition_type=Gtk.RevealerTransitionType.SLIDE_DOWN)
    label = Gtk.Label()
    label.set_markup("<span size='40000'>finished</span>")
    revealer.add(label)
    button = Gtk.Button(label="Start", width_request=200, height_request=60)

    stack = Gtk.Stack(transition_type=Gtk.StackTransitionType.NONE)
    for page in ("old", "grey", "new"):
        rows = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=8)
        for i in range(10):
            block = Gtk.EventBox(width_request=420, height_request=14)
            paint(block, "#cccccc")
            rows.add(block if page == "grey" else Gtk.Label(label=f"{page} message {i}: the invoice of {i + 3} March is paid", xalign=0))
        stack.add_named(rows, page)

    def show(page, to):
        global state
        state = to
        stack.set_visible_child_name(page)
        paint(square, COLOURS[to])

    def react(_):
        if KIND == "gtk_stack":
            show("grey", 1)
            GLib.timeout_add(MS, show, "new", 2)
        else:
            revealer.set_reveal_child(True)

    def arrived(*_):
        global state
        state = 1
        paint(square, COLOURS[1])

    revealer.connect("notify::child-revealed", arrived)
    button.connect("clicked", react)
    button.connect("button-press-event", lambda *_: report())
    window.connect("button-press-event", lambda *_: report())
    entry = Gtk.Entry(width_request=FIELD[2], height_request=FIELD[3])
    listed = Gtk.EventBox(width_request=LIST[2], height_request=LIST[3], no_show_all=True)
    paint(listed, "#ccddee")
    timer = 0

    def opened():
        nonlocal timer
        timer = 0
        listed.show()
        arrived()

    def changed(_):
        nonlocal timer
        if timer:
            GLib.source_remove(timer)
        timer = GLib.timeout_add(MS, opened)

    entry.connect("changed", changed)
    entry.connect("button-press-event", lambda *_: report())
    paint(square, COLOURS[0])
    fixed.put(square, 0, 0)
    if KIND == "gtk_stack":
        fixed.put(button, 100, 100)
        fixed.put(stack, 60, 480)
    elif MS:
        fixed.put(entry, *FIELD[:2])
        fixed.put(listed, *LIST[:2])
    else:
        fixed.put(button, 100, 100)
        fixed.put(revealer, 200, 300)
    window.add(fixed)
    window.show_all()
    window.move(0, 0)
    GLib.MainLoop().run()


{"tk": tk, "qt": qt, "gtk": gtk}[KIND.split("_")[0]]()
