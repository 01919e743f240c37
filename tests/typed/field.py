#!/usr/bin/env python3
"""A window with one text field that reports what is in it: tk, gtk3, gtk4 or qt.

    field.py KIND FOLDER

FOLDER/text holds the field's text, written anew after each change, FOLDER/ready appears with the window.  Every 20 ms
the program looks for FOLDER/do: "clear" empties the field, "stall MS" makes the program sleep in its event loop.
"""
import os
import sys
import time

KIND, FOLDER = sys.argv[1], sys.argv[2]


def write(name, text):
    path = os.path.join(FOLDER, name)
    with open(path + ".new", "w", encoding="utf-8", errors="surrogatepass", newline="") as f:
        f.write(text)
    os.rename(path + ".new", path)


def command(clear):
    try:
        path = os.path.join(FOLDER, "do")
        words = open(path).read().split()
        os.unlink(path)
    except FileNotFoundError:
        return
    if words[0] == "clear":
        clear()
    elif words[0] == "stall":
        time.sleep(int(words[1]) / 1000)


def run_tk():
    import tkinter

    root = tkinter.Tk()
    root.title("typing")
    text = tkinter.StringVar()
    entry = tkinter.Entry(root, textvariable=text, width=60)
    entry.pack(padx=20, pady=20)
    entry.focus_force()

    def value():
        return text.get().encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    text.trace_add("write", lambda *_: write("text", value()))

    def look():
        command(lambda: text.set(""))
        root.after(20, look)

    look()
    root.after(300, lambda: write("ready", ""))
    root.mainloop()


def run_gtk(version):
    import gi

    gi.require_version("Gtk", version)
    from gi.repository import GLib, Gtk

    def fill(window, entry):
        entry.connect("changed", lambda e: write("text", e.get_text()))

        def look():
            command(lambda: entry.set_text(""))
            return True

        GLib.timeout_add(20, look)
        GLib.timeout_add(300, lambda: write("ready", ""))

    if version == "3.0":
        window, entry = Gtk.Window(title="typing"), Gtk.Entry(width_chars=60)
        window.add(entry)
        window.show_all()
        fill(window, entry)
        Gtk.main()
        return
    application = Gtk.Application()

    def activate(app):
        window, entry = Gtk.ApplicationWindow(application=app, title="typing"), Gtk.Entry(width_chars=60)
        window.set_child(entry)
        window.present()
        entry.grab_focus()
        fill(window, entry)

    application.connect("activate", activate)
    application.run(None)


def run_qt():
    from PyQt5 import QtCore, QtWidgets

    app = QtWidgets.QApplication(sys.argv[:1])
    field = QtWidgets.QLineEdit()
    field.setWindowTitle("typing")
    field.resize(500, 60)
    field.textChanged.connect(lambda t: write("text", t))
    field.show()
    field.activateWindow()
    field.setFocus()
    timer = QtCore.QTimer()
    timer.timeout.connect(lambda: command(field.clear))
    timer.start(20)
    QtCore.QTimer.singleShot(300, lambda: write("ready", ""))
    app.exec_()


{"tk": run_tk, "gtk3": lambda: run_gtk("3.0"), "gtk4": lambda: run_gtk("4.0"), "qt": run_qt}[KIND]()
