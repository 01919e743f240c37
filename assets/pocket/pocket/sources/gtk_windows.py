"""GTK 3 windows with labels, as a program of the system's Python (python3-gi, needs a display).

    /usr/bin/python3 gtk_windows.py FONT SCALE DARK < plans > answers

Every widget with text has a Pango layout and its position. A window is drawn offscreen
(Gtk.OffscreenWindow), so it needs no window manager. toolkit.py plans the windows and reads the answers.

A plan is a JSON line {"width", "rows": [[kind, ...], ...]} with kinds label, button, check, radio, entry,
combo, text, spin, scale, switch, tabs, frame, list, link. An answer is a JSON line with the labels in the
form of labels.js (letters, elements, size), followed by RGB bytes whose number it has.
"""

import json
import sys

import gi
from answer import write_answer

gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk, Pango  # noqa: E402

ON, OFF, DISABLED, FOCUSED, SELECTED = 1, 2, 4, 8, 16


def spin_loop(n=30):
    for _ in range(n):
        while Gtk.events_pending():
            Gtk.main_iteration_do(False)


class Labels:
    def __init__(self, root):
        self.root, self.letters, self.elements, self.line, self.word = root, [], [], 0, 0

    def box(self, widget):
        a = widget.get_allocation()
        at = widget.translate_coordinates(self.root, 0, 0) or (a.x, a.y)
        return [at[0], at[1], at[0] + a.width, at[1] + a.height]

    def text(self, layout, x, y, clip):
        """Adds the letters of a layout drawn at (x, y) that are inside clip."""
        text = layout.get_text()
        at, last = 0, None
        for ch in text:
            r = layout.index_to_pos(at)
            at += len(ch.encode())
            if ch.isspace():
                self.word += 1
                continue
            x0, x1, y0, y1 = (v / Pango.SCALE for v in (*sorted((r.x, r.x + r.width)), r.y, r.y + r.height))
            b = [x + x0, y + y0, x + x1, y + y1]
            if last is None or abs(b[1] - last) > 2:
                self.line += 1
                self.word += 1
                last = b[1]
            cx, cy = (b[0] + b[2]) / 2, (b[1] + b[3]) / 2
            if clip[0] <= cx <= clip[2] and clip[1] <= cy <= clip[3]:
                self.letters.append([*b, ord(ch), self.line, self.word])
        self.word += 1

    def state(self, w):
        return 0 if w.is_sensitive() else DISABLED

    def element(self, w, kind, state=0, name=""):
        self.elements.append([*self.box(w), kind, state | self.state(w), name])

    def see(self, w):
        """Adds the labels of a widget and of its children."""
        if not w.get_mapped() or not w.get_visible():
            return
        b = self.box(w)
        if isinstance(w, Gtk.Label):
            x, y = w.get_layout_offsets()
            a = w.get_allocation()
            self.text(w.get_layout(), b[0] + x - a.x, b[1] + y - a.y, b)
        elif isinstance(w, Gtk.Entry):
            x, y = w.get_layout_offsets()
            right = b[2] - (62 if isinstance(w, Gtk.SpinButton) else 2)
            if w.get_text():
                self.text(w.get_layout(), b[0] + x, b[1] + y, [b[0] + 2, b[1], right, b[3]])
            self.element(w, "field", FOCUSED if w.has_focus() else 0)
        elif isinstance(w, Gtk.TextView):
            self.text_view(w, b)
            self.element(w, "area")
        elif isinstance(w, Gtk.Switch):
            self.element(w, "check", ON if w.get_active() else OFF)
        elif isinstance(w, Gtk.Scale):
            self.element(w, "slider")
        elif isinstance(w, Gtk.RadioButton):
            self.mark(w, b, "radio")
        elif isinstance(w, Gtk.CheckButton):
            self.mark(w, b, "check")
        elif isinstance(w, Gtk.LinkButton):
            self.element(w, "link", 0, w.get_label() or "")
        elif isinstance(w, Gtk.ComboBox):
            self.element(w, "select")
        elif isinstance(w, Gtk.Button):
            self.element(w, "button", 0, w.get_label() or "")
        elif isinstance(w, Gtk.ListBoxRow):
            self.element(w, "item", SELECTED if w.is_selected() else 0)
        if isinstance(w, Gtk.Notebook):
            self.tabs(w)
        if isinstance(w, Gtk.Container) and not isinstance(w, (Gtk.TextView,)):
            w.forall(self.see) if isinstance(w, (Gtk.ComboBox,)) else [self.see(c) for c in w.get_children()]

    def tabs(self, w):
        for k in range(w.get_n_pages()):
            tab = w.get_tab_label(w.get_nth_page(k))
            t, state = self.box(tab), SELECTED if w.get_current_page() == k else 0
            self.elements.append([t[0] - 8, t[1] - 4, t[2] + 8, t[3] + 4, "tab", state, tab.get_text()])
            self.see(tab)

    def mark(self, w, b, kind):
        """Adds the mark of a tick as an element; its text is a label of its own."""
        side, x, y = min(18, b[3] - b[1]), b[0] + 1, (b[1] + b[3]) / 2
        state = (ON if w.get_active() else OFF) | self.state(w)
        box = [x, y - side / 2, x + side, y + side / 2]
        self.elements.append([*box, kind, state, w.get_label() or ""])

    def text_view(self, w, b):
        buffer = w.get_buffer()
        at, last = buffer.get_start_iter(), None
        while not at.is_end():
            ch, r = at.get_char(), w.get_iter_location(at)
            x, y = w.buffer_to_window_coords(Gtk.TextWindowType.WIDGET, r.x, r.y)
            if ch.isspace():
                self.word += 1
            else:
                if y != last:
                    self.line, self.word, last = self.line + 1, self.word + 1, y
                x, y = b[0] + x, b[1] + y
                if y + r.height / 2 < b[3] - 1 and x + r.width / 2 < b[2] - 1:
                    box = [x, y, x + r.width, y + r.height]
                    self.letters.append([*box, ord(ch), self.line, self.word])
            at.forward_char()


def make(kind, *args):
    """Returns a widget for its plan."""
    if kind == "label":
        w = Gtk.Label(label=args[0], xalign=0, wrap=True)
        w.set_max_width_chars(46)
        return w
    if kind == "button":
        w = Gtk.Button(label=args[0])
        if args[1] == "suggested":
            w.get_style_context().add_class("suggested-action")
        w.set_sensitive(args[1] != "disabled")
        return w
    if kind in ("check", "radio"):
        w = Gtk.CheckButton(label=args[0]) if kind == "check" else Gtk.RadioButton(label=args[0])
        if kind == "radio" and not args[1]:
            w.join_group(Gtk.RadioButton())
            w = Gtk.RadioButton.new_with_label_from_widget(Gtk.RadioButton(), args[0])
        w.set_active(args[1])
        return w
    if kind == "entry":
        w = Gtk.Entry(text=args[0])
        w.set_width_chars(args[1])
        return w
    if kind == "text":
        w = Gtk.TextView(wrap_mode=Gtk.WrapMode.WORD_CHAR)
        w.get_buffer().set_text(args[0])
        w.set_size_request(160, 50)
        return w
    if kind == "spin":
        return Gtk.SpinButton(adjustment=Gtk.Adjustment(value=args[0], lower=0, upper=9999, step_increment=1))
    if kind == "scale":
        w = Gtk.Scale(adjustment=Gtk.Adjustment(value=args[0], lower=0, upper=100), draw_value=False)
        w.set_size_request(140, -1)
        return w
    if kind == "switch":
        return Gtk.Switch(active=args[0], halign=Gtk.Align.START)
    if kind == "combo":
        w = Gtk.ComboBoxText()
        for t in args[0]:
            w.append_text(t)
        w.set_active(args[1])
        return w
    if kind == "link":
        return Gtk.LinkButton(uri="x:", label=args[0])
    if kind == "tabs":
        w = Gtk.Notebook()
        for name, rows in args[0]:
            w.append_page(column(rows), Gtk.Label(label=name))
        return w
    if kind == "frame":
        w = Gtk.Frame(label=args[0])
        w.add(column(args[1]))
        return w
    if kind == "list":
        w = Gtk.ListBox()
        for t in args[0]:
            w.add(Gtk.Label(label=t, xalign=0))
        w.select_row(w.get_row_at_index(args[1]))
        return w
    raise ValueError(kind)


def column(rows):
    out = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=5, margin=6)
    for row in rows:
        line = Gtk.Box(spacing=8)
        for widget in row:
            line.pack_start(make(*widget), False, False, 0)
        out.pack_start(line, False, False, 0)
    return out


def main():
    font, scale, dark = sys.argv[1], float(sys.argv[2]), sys.argv[3] == "1"
    settings = Gtk.Settings.get_default()
    settings.set_property("gtk-font-name", font)
    settings.set_property("gtk-xft-dpi", int(96 * 1024 * scale))
    settings.set_property("gtk-application-prefer-dark-theme", dark)
    settings.set_property("gtk-enable-animations", False)
    for line in sys.stdin:
        plan = json.loads(line)
        window = Gtk.OffscreenWindow()
        window.set_default_size(plan["width"], -1)
        body = column(plan["rows"])
        window.add(body)
        window.show_all()
        spin_loop()
        GLib.usleep(20000)
        spin_loop()
        picture = window.get_pixbuf()
        labels = Labels(window)
        labels.see(body)
        w, h, n, raw = (
            picture.get_width(),
            picture.get_height(),
            picture.get_n_channels(),
            picture.get_pixels(),
        )
        starts = range(0, h * picture.get_rowstride(), picture.get_rowstride())
        pixels = (raw[s + x : s + x + 3] for s in starts for x in range(0, n * w, n))
        rgb = b"".join(raw[s : s + 3 * w] for s in starts) if n == 3 else b"".join(pixels)
        write_answer(labels, w, h, rgb)
        window.destroy()


if __name__ == "__main__":
    main()
