#!/usr/bin/env python3
"""A window for observed.py with two buttons, a field, a list, a clock and a spinner; or one that disturbs a run.

    observed_app.py tk|gtk3|gtk4|qt5|qt6|chat LOG

Writes its events to LOG, one per line: "press Save", "row 17", "text hello", "key", "click". Reads commands from
stdin, one per line: swap, scroll N, move X Y, resize W, iconify, and for chat: show X Y W H, plain X Y W H (without
the window manager), hide. "where" writes the positions of the widgets to LOG.places, in pixels of the root.
"""
import json
import os
import sys
import threading
import time

KIND, LOG = sys.argv[1], sys.argv[2]
ROWS = [f"{n:03d} {w}" for n, w in enumerate(["invoice", "report", "holiday pictures", "letter", "budget"] * 12)]
LABELS = ["Save", "Delete all"]


def log(text):
    with open(LOG, "a") as f:
        f.write(text + "\n")
    with open(LOG + ".times", "a") as f:
        f.write(f"{time.time():.3f} {text}\n")


def places(found):
    with open(LOG + ".new", "w") as f:
        json.dump(found, f)
    os.rename(LOG + ".new", LOG + ".places")


def read_commands(do):
    for line in sys.stdin:
        with open(LOG + ".times", "a") as f:
            f.write(f"{time.time():.3f} -> {line}")
        do(line.split())
    os._exit(0)


def run_tk():
    import tkinter as tk
    root = tk.Tk(className="Mail")
    root.title("Mail")
    root.geometry("420x460+150+120")
    bar = tk.Frame(root)
    bar.pack(fill="x", pady=8)
    buttons = [tk.Button(bar, text=t) for t in LABELS]
    for b in buttons:
        b.configure(command=lambda b=b: log("press " + b["text"]))
        b.pack(side="right", padx=10, ipadx=10)
    clock = tk.Label(bar)
    clock.pack(side="left", padx=6)
    spin = tk.Canvas(bar, width=20, height=20)
    spin.pack(side="left")
    entry = tk.Entry(root)
    entry.pack(fill="x", padx=10)
    entry.bind("<KeyRelease>", lambda e: log("text " + entry.get()))
    rows = tk.Listbox(root, exportselection=False)
    rows.insert("end", *ROWS)
    rows.pack(fill="both", expand=True, padx=10, pady=10)
    rows.bind("<<ListboxSelect>>", lambda e: log("row " + rows.get(rows.curselection()[0])[:3]))
    arc = spin.create_arc(2, 2, 18, 18, extent=90, fill="black")

    def tick():
        clock["text"] = time.strftime("%H:%M:%S")
        root.after(500, tick)

    def turn(at=0):
        spin.itemconfig(arc, start=at)
        root.after(80, turn, at + 15)

    def middle(w):
        return [w.winfo_rootx() + w.winfo_width() // 2, w.winfo_rooty() + w.winfo_height() // 2]

    def do(c):
        if c[0] == "swap":
            for b, t in zip(buttons, LABELS[::-1]):
                b["text"] = t
        elif c[0] == "scroll":
            rows.yview_scroll(int(c[1]), "units")
        elif c[0] == "move":
            root.geometry(f"+{c[1]}+{c[2]}")
        elif c[0] == "resize":
            root.geometry(f"{c[1]}x460")
        elif c[0] == "iconify":
            root.iconify()
        elif c[0] == "where":
            first = rows.nearest(0)
            x, y, w, h = rows.bbox(first + 3)
            places({"save": middle(buttons[0]), "entry": middle(entry), "clock": middle(clock),
                    "row": [rows.winfo_rootx() + 60, rows.winfo_rooty() + y + h // 2], "row_name": ROWS[first + 3][:3]})

    threading.Thread(target=read_commands, args=(lambda c: root.after(0, do, c),), daemon=True).start()
    tick()
    turn()
    entry.focus_force()
    root.mainloop()


def run_gtk3():
    import gi
    gi.require_version("Gtk", "3.0")
    from gi.repository import GLib, Gtk
    win = Gtk.Window(title="Mail")
    win.set_default_size(420, 460)
    box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=8, margin=8)
    bar = Gtk.Box(spacing=10)
    clock, spinner = Gtk.Label(), Gtk.Spinner(active=True)
    bar.pack_start(clock, False, False, 0)
    bar.pack_start(spinner, False, False, 0)
    buttons = [Gtk.Button(label=t) for t in LABELS]
    for b in buttons:
        b.connect("clicked", lambda b: log("press " + b.get_label()))
        bar.pack_end(b, False, False, 0)
    entry = Gtk.Entry()
    entry.connect("changed", lambda e: log("text " + e.get_text()))
    store = Gtk.ListStore(str)
    for r in ROWS:
        store.append([r])
    rows = Gtk.TreeView(model=store, headers_visible=False)
    rows.append_column(Gtk.TreeViewColumn("", Gtk.CellRendererText(), text=0))

    def selected(sel):
        model, at = sel.get_selected()
        if at:
            log("row " + model[at][0][:3])

    rows.get_selection().connect("changed", selected)
    scroll = Gtk.ScrolledWindow()
    scroll.add(rows)
    for w, fill in ((bar, False), (entry, False), (scroll, True)):
        box.pack_start(w, fill, fill, 0)
    win.add(box)
    win.connect("destroy", lambda w: os._exit(0))
    win.show_all()
    win.move(150, 120)
    entry.grab_focus()
    rows.get_selection().unselect_all()

    def tick():
        clock.set_text(time.strftime("%H:%M:%S"))
        return True

    def middle(w):
        a = w.get_allocation()
        _, x, y = w.get_window().get_origin()
        if w.get_has_window():
            return [x + a.width // 2, y + a.height // 2]
        return [x + a.x + a.width // 2, y + a.y + a.height // 2]

    def row_place():
        path = rows.get_visible_range()[0]
        third = Gtk.TreePath(path.get_indices()[0] + 3)
        area = rows.get_cell_area(third, rows.get_column(0))
        wx, wy = rows.convert_bin_window_to_widget_coords(area.x + 60, area.y + area.height // 2)
        x, y = rows.translate_coordinates(win, wx, wy)
        _, ox, oy = win.get_window().get_origin()
        return [ox + x, oy + y], ROWS[third.get_indices()[0]][:3]

    def do(c):
        if c[0] == "swap":
            for b, t in zip(buttons, LABELS[::-1]):
                b.set_label(t)
        elif c[0] == "scroll":
            a = scroll.get_vadjustment()
            a.set_value(a.get_value() + int(c[1]) * rows.get_cell_area(Gtk.TreePath(0), rows.get_column(0)).height)
        elif c[0] == "move":
            win.move(int(c[1]), int(c[2]))
        elif c[0] == "resize":
            win.resize(int(c[1]), 460)
        elif c[0] == "iconify":
            win.iconify()
        elif c[0] == "where":
            place, name = row_place()
            x, y = entry.translate_coordinates(win, entry.get_allocated_width() // 2, entry.get_allocated_height() // 2)
            _, ox, oy = win.get_window().get_origin()
            bx, by = buttons[0].translate_coordinates(win, buttons[0].get_allocated_width() // 2,
                                                      buttons[0].get_allocated_height() // 2)
            places({"save": [ox + bx, oy + by], "entry": [ox + x, oy + y], "row": place, "row_name": name})
        return False

    GLib.timeout_add(500, tick)
    threading.Thread(target=read_commands, args=(lambda c: GLib.idle_add(do, c),), daemon=True).start()
    Gtk.main()


def run_gtk4():
    import gi
    gi.require_version("Gtk", "4.0")
    from gi.repository import GLib, Gtk
    win = Gtk.Window(title="Mail", default_width=420, default_height=460)
    box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=8)
    bar = Gtk.Box(spacing=10)
    clock, spinner = Gtk.Label(), Gtk.Spinner(spinning=True)
    progress = Gtk.ProgressBar()
    for w in [clock, spinner] + [Gtk.Button(label=t) for t in LABELS]:
        bar.append(w)
    for w in [bar, Gtk.Entry(), progress, Gtk.Switch(), Gtk.Scale(), Gtk.CheckButton(label="Remember"),
              Gtk.TextView(vexpand=True)]:
        box.append(w)
    win.set_child(box)
    win.present()

    def tick():
        clock.set_text(time.strftime("%H:%M:%S"))
        progress.pulse()
        return True

    GLib.timeout_add(250, tick)
    GLib.MainLoop().run()


def run_qt(binding):
    if binding == "qt5":
        from PyQt5 import QtCore, QtWidgets as W
    else:
        from PyQt6 import QtCore, QtWidgets as W
    app = W.QApplication(sys.argv[:1])
    win = W.QWidget()
    win.setWindowTitle("Mail")
    win.resize(420, 460)
    grid = W.QVBoxLayout(win)
    clock, progress = W.QLabel(), W.QProgressBar()
    progress.setRange(0, 0)
    rows = W.QListWidget()
    rows.addItems(ROWS)
    for w in [clock, W.QPushButton("Save"), W.QLineEdit(), progress, W.QCheckBox("Remember"), W.QSpinBox(), rows]:
        grid.addWidget(w)
    timer = QtCore.QTimer()
    timer.timeout.connect(lambda: clock.setText(time.strftime("%H:%M:%S")))
    timer.start(500)
    win.show()
    (app.exec_ if binding == "qt5" else app.exec)()


def run_chat():
    import tkinter as tk
    root = tk.Tk(className="Chat")
    root.withdraw()
    root.title("Chat")
    root.bind("<Key>", lambda e: log("key"))
    root.bind("<Button>", lambda e: log("click"))
    tk.Label(root, text="Are you there?").pack(expand=True)

    def do(c):
        if c[0] == "hide":
            root.withdraw()
            return
        root.withdraw()
        root.overrideredirect(c[0] == "plain")
        root.geometry(f"{c[3]}x{c[4]}+{c[1]}+{c[2]}")
        root.deiconify()
        root.lift()
        if c[0] == "show":
            root.focus_force()

    threading.Thread(target=read_commands, args=(lambda c: root.after(0, do, c),), daemon=True).start()
    root.mainloop()


{"tk": run_tk, "gtk3": run_gtk3, "gtk4": run_gtk4, "qt5": lambda: run_qt("qt5"), "qt6": lambda: run_qt("qt6"),
 "chat": run_chat}[KIND]()
