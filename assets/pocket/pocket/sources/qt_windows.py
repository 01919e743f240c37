"""Qt 5 windows with labels, as a program of the system's Python (python3-pyqt5, no display).

    /usr/bin/python3 qt_windows.py FONT SCALE DARK < plans > answers

Plans and answers are those of gtk_windows.py. Windows are drawn on Qt's offscreen platform in the style
Fusion. A style reports where a widget's text is (QStyle.subElementRect, subControlRect); letters are placed
by the width of the text before them (QFontMetricsF), wrapped text by a QTextLayout of the same width. Font
size is in points times SCALE.
"""

import json
import os
import sys

os.environ["QT_QPA_PLATFORM"] = "offscreen"
from answer import write_answer
from PyQt5 import QtCore, QtGui
from PyQt5 import QtWidgets as Q
from PyQt5.QtCore import Qt

ON, OFF, DISABLED, FOCUSED, SELECTED = 1, 2, 4, 8, 16
LEFT = Qt.AlignLeft | Qt.AlignVCenter


class Labels:
    def __init__(self, root):
        self.root, self.letters, self.elements, self.line, self.word = root, [], [], 0, 0

    def box(self, w, rect=None):
        rect = rect or w.rect()
        at = w.mapTo(self.root, rect.topLeft())
        return [at.x(), at.y(), at.x() + rect.width(), at.y() + rect.height()]

    def text(self, font, text, box, align, wrap=False):
        """Adds the letters of a text that are inside a box."""
        layout, options = QtGui.QTextLayout(text, font), QtGui.QTextOption()
        options.setWrapMode(QtGui.QTextOption.WordWrap if wrap else QtGui.QTextOption.NoWrap)
        layout.setTextOption(options)
        layout.beginLayout()
        lines, height = [], 0.0
        while True:
            line = layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(box[2] - box[0] if wrap else 1e6)
            line.setPosition(QtCore.QPointF(0, height))
            height += line.height()
            lines.append(line)
        layout.endLayout()
        top = box[1] + (box[3] - box[1] - height) / 2 if align & Qt.AlignVCenter else box[1]
        for line in lines:
            used = line.naturalTextWidth()
            left = box[0] + ((box[2] - box[0] - used) / 2 if align & Qt.AlignHCenter else 0)
            self.line += 1
            self.word += 1
            for k in range(line.textStart(), line.textStart() + line.textLength()):
                if text[k].isspace():
                    self.word += 1
                    continue
                x0, x1 = line.cursorToX(k)[0], line.cursorToX(k + 1)[0]
                b = [left + x0, top + line.y(), left + x1, top + line.y() + line.height()]
                x, y = (b[0] + b[2]) / 2, (b[1] + b[3]) / 2
                if box[0] - 1 <= x <= box[2] + 1 and box[1] - 1 <= y <= box[3] + 1:
                    self.letters.append([*b, ord(text[k]), self.line, self.word])
        self.word += 1

    def element(self, box, kind, state, name=""):
        self.elements.append([*box, kind, state, name])

    def see(self, w):
        if not w.isVisible():
            return
        state = 0 if w.isEnabled() else DISABLED
        if isinstance(w, (Q.QCheckBox, Q.QRadioButton)):
            self.mark(w, state)
        elif isinstance(w, Q.QPushButton):
            self.text(w.font(), w.text(), self.box(w), Qt.AlignCenter)
            self.element(self.box(w), "button", state, w.text())
        elif isinstance(w, Q.QLineEdit):
            b = self.box(w)
            self.text(w.font(), w.text(), [b[0] + 4, b[1], b[2] - 3, b[3]], LEFT)
            if not isinstance(w.parent(), (Q.QSpinBox, Q.QComboBox)):
                self.element(b, "field", state | (FOCUSED if w.hasFocus() else 0))
        elif isinstance(w, Q.QSpinBox):
            self.see(w.lineEdit())
            self.element(self.box(w), "field", state)
        elif isinstance(w, Q.QComboBox):
            self.combo(w, state)
        elif isinstance(w, Q.QPlainTextEdit):
            self.area(w)
            self.element(self.box(w), "area", state)
        elif isinstance(w, Q.QSlider):
            self.element(self.box(w), "slider", state)
        elif isinstance(w, Q.QLabel):
            link = w.property("link")
            self.text(w.font(), w.property("plain"), self.box(w, w.contentsRect()), LEFT, w.wordWrap())
            if link:
                self.element(self.box(w), "link", state, w.property("plain"))
        elif isinstance(w, Q.QListWidget):
            for k in range(w.count()):
                r = w.visualItemRect(w.item(k))
                b = self.box(w.viewport(), r)
                self.text(w.font(), w.item(k).text(), [b[0] + 3, b[1], b[2], b[3]], LEFT)
                self.element(b, "item", SELECTED if w.item(k).isSelected() else 0, w.item(k).text())
        else:
            self.group(w)

    def group(self, w):
        """Adds the labels of a container; tabs and frames have names."""
        if isinstance(w, Q.QTabBar):
            for k in range(w.count()):
                b = self.box(w, w.tabRect(k))
                self.text(w.font(), w.tabText(k), b, Qt.AlignCenter)
                self.element(b, "tab", SELECTED if w.currentIndex() == k else 0, w.tabText(k))
        if isinstance(w, Q.QGroupBox):
            o = Q.QStyleOptionGroupBox()
            w.initStyleOption(o)
            label = w.style().subControlRect(Q.QStyle.CC_GroupBox, o, Q.QStyle.SC_GroupBoxLabel, w)
            self.text(w.font(), w.title(), self.box(w, label), Qt.AlignCenter)
        for c in w.children():
            if isinstance(c, Q.QWidget):
                self.see(c)

    def mark(self, w, state):
        kind, name = ("check", "CheckBox") if isinstance(w, Q.QCheckBox) else ("radio", "RadioButton")
        o = Q.QStyleOptionButton()
        w.initStyleOption(o)
        mark, text = (
            w.style().subElementRect(getattr(Q.QStyle, f"SE_{name}{part}"), o, w)
            for part in ("Indicator", "Contents")
        )
        self.text(w.font(), w.text(), self.box(w, text), LEFT)
        self.element(self.box(w, mark), kind, state | (ON if w.isChecked() else OFF), w.text())

    def combo(self, w, state):
        o = Q.QStyleOptionComboBox()
        w.initStyleOption(o)
        inner = w.style().subControlRect(Q.QStyle.CC_ComboBox, o, Q.QStyle.SC_ComboBoxEditField, w)
        b = self.box(w, inner)
        self.text(w.font(), w.currentText(), [b[0] + 1, b[1], b[2], b[3]], LEFT)
        self.element(self.box(w), "select", state, w.currentText())

    def area(self, w):
        b, layout = self.box(w.viewport()), w.document().firstBlock().layout()
        off = w.contentOffset()
        for k in range(layout.lineCount()):
            line, text = layout.lineAt(k), w.document().firstBlock().text()
            self.line += 1
            self.word += 1
            for i in range(line.textStart(), line.textStart() + line.textLength()):
                if text[i].isspace():
                    self.word += 1
                    continue
                x, y = b[0] + off.x(), b[1] + off.y() + line.y()
                x0, x1 = x + line.cursorToX(i)[0], x + line.cursorToX(i + 1)[0]
                if y + line.height() / 2 < b[3] - 1:
                    box = [x0, y, x1, y + line.height()]
                    self.letters.append([*box, ord(text[i]), self.line, self.word])


def make(kind, *a):
    if kind in ("label", "link"):
        w = Q.QLabel(f'<a href="x">{a[0]}</a>' if kind == "link" else a[0])
        w.setProperty("plain", a[0])
        w.setProperty("link", kind == "link")
        w.setWordWrap(kind == "label" and len(a[0]) > 40)
        if kind == "link":
            w.setSizePolicy(Q.QSizePolicy.Fixed, Q.QSizePolicy.Fixed)
        return w
    if kind == "button":
        w = Q.QPushButton(a[0])
        w.setDefault(a[1] == "suggested")
        w.setEnabled(a[1] != "disabled")
        return w
    if kind in ("check", "radio", "switch"):
        w = Q.QRadioButton(a[0]) if kind == "radio" else Q.QCheckBox("" if kind == "switch" else a[0])
        w.setAutoExclusive(False)
        w.setChecked(bool(a[-1]))
        return w
    if kind == "entry":
        w = Q.QLineEdit(a[0])
        w.setFixedWidth(9 * a[1] + 12)
        w.setCursorPosition(0)
        return w
    if kind == "text":
        w = Q.QPlainTextEdit(a[0])
        w.setFixedSize(200, 60)
        return w
    if kind == "spin":
        w = Q.QSpinBox()
        w.setRange(0, 9999)
        w.setValue(a[0])
        return w
    if kind == "scale":
        w = Q.QSlider(Qt.Horizontal)
        w.setValue(a[0])
        w.setFixedWidth(140)
        return w
    if kind == "combo":
        w = Q.QComboBox()
        w.addItems(a[0])
        w.setCurrentIndex(a[1])
        return w
    if kind == "tabs":
        w = Q.QTabWidget()
        for name, rows in a[0]:
            w.addTab(column(rows), name)
        return w
    if kind == "frame":
        w = Q.QGroupBox(a[0])
        Q.QVBoxLayout(w).addWidget(column(a[1]))
        return w
    if kind == "list":
        w = Q.QListWidget()
        w.addItems(a[0])
        w.setCurrentRow(a[1])
        w.setFixedHeight(20 * len(a[0]) + 8)
        w.setVerticalScrollBarPolicy(Qt.ScrollBarAlwaysOff)
        return w
    raise ValueError(kind)


def column(rows):
    out = Q.QWidget()
    box = Q.QVBoxLayout(out)
    for row in rows:
        line = Q.QHBoxLayout()
        for widget in row:
            line.addWidget(make(*widget))
        if row[0][0] not in ("label", "tabs", "frame", "list") or len(row) > 1:
            line.addStretch(1)
        box.addLayout(line)
    return out


def dark_palette():
    p = QtGui.QPalette()
    colours = dict.fromkeys(("WindowText", "Text", "ButtonText", "HighlightedText"), "#ffffff")
    colours |= dict(Window="#353535", AlternateBase="#353535", Base="#232323", Button="#404040")
    colours |= dict(Link="#6ab0f3", Highlight="#2a82da")
    for role, colour in colours.items():
        p.setColor(getattr(QtGui.QPalette, role), QtGui.QColor(colour))
    return p


def main():
    family, size = sys.argv[1].rsplit(" ", 1)
    app = Q.QApplication(["world"])
    app.setStyle("Fusion")
    if sys.argv[3] == "1":
        app.setPalette(dark_palette())
    font = QtGui.QFont(family)
    font.setPixelSize(round(float(size) * float(sys.argv[2]) * 96 / 72))
    app.setFont(font)
    if QtGui.QFontInfo(font).family() != family:
        raise RuntimeError(f"{family} is drawn as {QtGui.QFontInfo(font).family()}")
    for text in sys.stdin:
        plan = json.loads(text)
        window = column(plan["rows"])
        window.setMinimumWidth(plan["width"])
        window.show()
        for _ in range(5):
            app.processEvents()
        picture = window.grab().toImage().convertToFormat(QtGui.QImage.Format_RGB888)
        labels = Labels(window)
        labels.see(window)
        w, h, stride = picture.width(), picture.height(), picture.bytesPerLine()
        raw = picture.constBits().asstring(stride * h)
        rgb = b"".join(raw[y * stride : y * stride + 3 * w] for y in range(h))
        write_answer(labels, w, h, rgb)
        window.close()


if __name__ == "__main__":
    main()
