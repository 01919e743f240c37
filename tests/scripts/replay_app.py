#!/usr/bin/python3
"""A Qt 6 window with tabs, a table with a button in each row, a list of choices and a dialog: replay_matrix.py records and
replays it. It prints its values on Save. German with LANG=de_DE.UTF-8."""
import os
import sys

from PyQt6 import QtCore, QtWidgets as W

GERMAN = {"Guests": "Gäste", "Order": "Bestellung", "Remove": "Entfernen", "City": "Ort", "Nights": "Nächte",
          "Breakfast": "Frühstück", "Save": "Speichern", "Discard": "Verwerfen", "Name": "Name",
          "Really save?": "Wirklich speichern?", "Rooms": "Zimmer"}


def tr(text):
    return GERMAN[text] if os.environ.get("LANG", "").startswith("de") and not os.environ.get("LC_ALL") else text


class Window(W.QWidget):
    def __init__(self):
        super().__init__()
        self.setWindowTitle(tr("Rooms"))
        self.tabs, save, discard = W.QTabWidget(), W.QPushButton(tr("Save")), W.QPushButton(tr("Discard"))
        self.table = W.QTableWidget(0, 3)
        self.table.setHorizontalHeaderLabels([tr("Name"), tr("City"), ""])
        for name, city in (("Ana", "Porto"), ("Bo", "Lima"), ("Cy", "Rome")):
            self.add(name, city)
        self.tabs.addTab(self.table, tr("Guests"))
        form = W.QWidget()
        rows = W.QFormLayout(form)
        self.city, self.nights, self.breakfast = W.QComboBox(), W.QLineEdit(), W.QCheckBox(tr("Breakfast"))
        self.city.addItems(["Lima", "Porto", "Rome"])
        rows.addRow(tr("City"), self.city)
        rows.addRow(tr("Nights"), self.nights)
        rows.addRow("", self.breakfast)
        self.tabs.addTab(form, tr("Order"))
        bar = W.QHBoxLayout()
        bar.addStretch()
        for b in (discard, save):
            bar.addWidget(b)
        box = W.QVBoxLayout(self)
        box.addWidget(self.tabs)
        box.addLayout(bar)
        save.clicked.connect(self.save)
        discard.clicked.connect(QtCore.QCoreApplication.quit)
        self.resize(420, 300)

    def add(self, name, city):
        row = self.table.rowCount()
        self.table.insertRow(row)
        self.table.setItem(row, 0, W.QTableWidgetItem(name))
        self.table.setItem(row, 1, W.QTableWidgetItem(city))
        button = W.QPushButton(tr("Remove"))
        button.clicked.connect(lambda: self.table.removeRow(self.table.indexAt(button.pos()).row()))
        self.table.setCellWidget(row, 2, button)

    def save(self):
        ok = W.QMessageBox.question(self, tr("Save"), tr("Really save?"))
        if ok != W.QMessageBox.StandardButton.Yes:
            return
        names = [self.table.item(i, 0).text() for i in range(self.table.rowCount())]
        print(",".join(names), self.city.currentText(), self.nights.text(), self.breakfast.isChecked(), flush=True)
        QtCore.QCoreApplication.quit()


app = W.QApplication(sys.argv)
if tr("Save") != "Save":
    translator = QtCore.QTranslator()
    translator.load("qtbase_de", QtCore.QLibraryInfo.path(QtCore.QLibraryInfo.LibraryPath.TranslationsPath))
    app.installTranslator(translator)
if os.environ.get("REPLAY_STYLE"):
    app.setStyle(os.environ["REPLAY_STYLE"])
if os.environ.get("REPLAY_DARK"):
    from PyQt6 import QtGui

    palette, roles = QtGui.QPalette(QtGui.QColor(45, 45, 48)), QtGui.QPalette.ColorRole
    app.setPalette(palette)
window = Window()
window.show()
sys.exit(app.exec())
