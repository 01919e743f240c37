#!/usr/bin/env python3
"""A window with one text field that reports its content: tk, gtk3, gtk4, qt, qt6 (with -text: several lines), or writer,
a document of LibreOffice Writer.

    field.py KIND FOLDER

FOLDER/text holds the field's text, rewritten after each change; FOLDER/ready appears with the window. Every 20 ms the
program looks for FOLDER/do: "clear" empties the field, "stall MS" makes the program sleep in its event loop, and
"dialog" (tk, gtk3, qt) lets the next press in the field open a dialog, whose own field is FOLDER/dialog.
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


dialog_wanted = False


def take_dialog():
    """Returns whether this press opens the dialog."""
    global dialog_wanted
    wanted, dialog_wanted = dialog_wanted, False
    if wanted:
        write("dialog", "")
    return wanted


def command(clear):
    global dialog_wanted
    try:
        path = os.path.join(FOLDER, "do")
        words = open(path).read().split()
        os.unlink(path)
    except FileNotFoundError:
        return
    if words[0] == "clear":
        clear()
    elif words[0] == "dialog":
        dialog_wanted = True
    elif words[0] == "stall":
        time.sleep(int(words[1]) / 1000)


def run_tk():
    import tkinter

    root = tkinter.Tk()
    root.title("typing")
    if KIND == "tk-text":
        return run_tk_text(root, tkinter)
    text = tkinter.StringVar()
    entry = tkinter.Entry(root, textvariable=text, width=60)
    entry.pack(padx=20, pady=20)
    entry.focus_force()

    def value():
        return text.get().encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    text.trace_add("write", lambda *_: write("text", value()))

    def open_dialog(_):
        if not take_dialog():
            return
        top, inside = tkinter.Toplevel(root), tkinter.StringVar()
        top.title("dialog")
        field = tkinter.Entry(top, textvariable=inside, width=40)
        field.pack(padx=30, pady=30)
        inside.trace_add("write", lambda *_: write("dialog", inside.get()))
        top.transient(root)
        field.focus_force()
        root.wait_visibility(top)
        top.grab_set()

    entry.bind("<ButtonRelease-1>", open_dialog)

    def look():
        command(lambda: text.set(""))
        root.after(20, look)

    look()
    root.after(300, lambda: write("ready", ""))
    root.mainloop()


def run_tk_text(root, tkinter):
    area = tkinter.Text(root, width=60, height=8)
    area.pack(padx=20, pady=20)
    area.focus_force()
    last = ""

    def look():
        nonlocal last
        now = area.get("1.0", "end-1c")
        if now != last:
            write("text", now)
            last = now
        command(lambda: area.delete("1.0", "end"))
        root.after(20, look)

    look()
    root.after(300, lambda: write("ready", ""))
    root.mainloop()


def run_gtk(version):
    import gi

    gi.require_version("Gtk", version)
    lines = KIND.endswith("-text")
    from gi.repository import GLib, Gtk

    def make():
        return Gtk.TextView(width_request=500, height_request=150) if lines else Gtk.Entry(
            width_chars=60, visibility=not KIND.endswith("-password"))

    def fill(window, entry):
        source = entry.get_buffer() if lines else entry
        source.connect("changed", lambda e: write("text", e.get_property("text")))

        def look():
            command(lambda: source.set_property("text", ""))
            return True

        GLib.timeout_add(20, look)
        GLib.timeout_add(300, lambda: write("ready", ""))

    def open_dialog(entry, _):
        if take_dialog():
            dialog, field = Gtk.Dialog(title="dialog", transient_for=entry.get_toplevel(), modal=True), Gtk.Entry()
            dialog.get_content_area().add(field)
            field.connect("changed", lambda e: write("dialog", e.get_text()))
            dialog.show_all()
            field.grab_focus()
        return False

    if version == "3.0":
        window, entry = Gtk.Window(title="typing"), make()
        entry.connect("button-release-event", open_dialog)
        window.add(entry)
        window.show_all()
        fill(window, entry)
        Gtk.main()
        return
    application = Gtk.Application()

    def activate(app):
        window, entry = Gtk.ApplicationWindow(application=app, title="typing"), make()
        window.set_child(entry)
        window.present()
        entry.grab_focus()
        fill(window, entry)

    application.connect("activate", activate)
    application.run(None)


def run_qt():
    if KIND.startswith("qt6"):
        from PyQt6 import QtCore, QtWidgets
    else:
        from PyQt5 import QtCore, QtWidgets

    app = QtWidgets.QApplication(sys.argv[:1])
    lines = KIND.endswith("-text")

    class Line(QtWidgets.QLineEdit):
        def mouseReleaseEvent(self, event):
            super().mouseReleaseEvent(event)
            if take_dialog():
                self.dialog = QtWidgets.QDialog(self)
                self.dialog.setWindowTitle("dialog")
                inside = QtWidgets.QLineEdit(self.dialog)
                inside.textChanged.connect(lambda text: write("dialog", text))
                self.dialog.setModal(True)
                self.dialog.resize(300, 100)
                self.dialog.show()
                inside.setFocus()

    field = QtWidgets.QPlainTextEdit() if lines else Line()
    field.setWindowTitle("typing")
    field.resize(500, 150 if lines else 60)
    field.textChanged.connect(lambda *_: write("text", field.toPlainText() if lines else field.text()))
    field.show()
    field.activateWindow()
    field.setFocus()
    timer = QtCore.QTimer()
    timer.timeout.connect(lambda: command(field.clear))
    timer.start(20)
    QtCore.QTimer.singleShot(300, lambda: write("ready", ""))
    app.exec()


def run_writer():
    import subprocess

    import uno

    pipe = f"field{os.getpid()}"
    program = subprocess.Popen(
        ["soffice", f"-env:UserInstallation=file://{FOLDER}/office", "--norestore", "--nologo",
         f"--accept=pipe,name={pipe};urp;", "--writer"])
    resolver = uno.getComponentContext().ServiceManager.createInstance("com.sun.star.bridge.UnoUrlResolver")
    document = last = None
    while program.poll() is None:
        time.sleep(0.05)
        try:
            if document is None:
                context = resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
                desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
                document = desktop.getCurrentComponent()
                continue
            text = document.Text.String
        except Exception:
            document = None
            continue
        if document.CurrentController.Frame.Title != "typing":
            document.CurrentController.Frame.Title = "typing"
            write("ready", "")
        if text != last:
            write("text", text)
            last = text
        command(lambda: document.Text.setString(""))


def run():
    kind = KIND.split("-")[0]
    {"tk": run_tk, "gtk3": lambda: run_gtk("3.0"), "gtk4": lambda: run_gtk("4.0"), "qt": run_qt, "qt6": run_qt,
     "writer": run_writer}[kind]()


run()
