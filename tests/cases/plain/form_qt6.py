#!/usr/bin/python3
"""A form of Qt 6 that prints each action, and its values when Save is pressed."""
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QAction
from PyQt6.QtWidgets import (QApplication, QCheckBox, QComboBox, QFormLayout, QGroupBox, QHBoxLayout, QLineEdit,
                             QListWidget, QMainWindow, QMessageBox, QPlainTextEdit, QPushButton, QRadioButton, QSlider,
                             QSpinBox, QTabWidget, QVBoxLayout, QWidget)


def say(*words):
    print(*words, sep="|", flush=True)


class Form(QMainWindow):
    def __init__(self):
        super().__init__()
        self.setWindowTitle("Booking")
        self.tabs = QTabWidget()
        self.setCentralWidget(self.tabs)
        self.tabs.addTab(self.traveller(), "Traveller")
        self.tabs.addTab(self.extras(), "Extras")
        file = self.menuBar().addMenu("&File")
        for name in ("&New booking", "&Duplicate"):
            file.addAction(QAction(name, self, triggered=lambda _, n=name: say("menu", n.replace("&", ""))))
        share = file.addMenu("&Share")
        share.addAction(QAction("By &mail...", self, triggered=lambda: say("menu", "mail")))
        edit = self.menuBar().addMenu("&Edit")
        edit.addAction(QAction("Clear form", self, triggered=self.clear))
        self.resize(520, 430)

    def traveller(self):
        page, form = QWidget(), QFormLayout()
        self.name, self.city, self.count = QLineEdit(), QLineEdit("Porto"), QSpinBox()
        self.size, self.code = QComboBox(), QLineEdit()
        self.size.addItems(["Small", "Medium", "Large", "Extra large"])
        self.code.setEchoMode(QLineEdit.EchoMode.Password)
        for label, widget in (("&Name:", self.name), ("&City:", self.city), ("Bags:", self.count),
                              ("Size:", self.size), ("Code:", self.code)):
            form.addRow(label, widget)
        self.window, self.meal = QCheckBox("&Window seat"), QCheckBox("Vegetarian meal")
        self.meal.setChecked(True)
        form.addRow(self.window)
        form.addRow(self.meal)
        row = QHBoxLayout()
        save, cancel = QPushButton("&Save"), QPushButton("Cancel")
        later = QPushButton("Pay later")
        later.setEnabled(False)
        save.clicked.connect(self.save)
        cancel.clicked.connect(lambda: say("cancelled"))
        later.clicked.connect(lambda: say("later"))
        for button in (save, cancel, later):
            row.addWidget(button)
        form.addRow(row)
        page.setLayout(form)
        return page

    def extras(self):
        page, box = QWidget(), QVBoxLayout()
        group, radios = QGroupBox("Class"), QVBoxLayout()
        self.economy, self.first = QRadioButton("Economy"), QRadioButton("First class")
        self.economy.setChecked(True)
        radios.addWidget(self.economy)
        radios.addWidget(self.first)
        group.setLayout(radios)
        self.list = QListWidget()
        self.list.addItems(["Lisbon", "Madrid", "New York", "York"])
        self.list.setAccessibleName("Destination")
        self.list.setMaximumHeight(100)
        self.note = QPlainTextEdit()
        self.note.setAccessibleName("Note")
        level = QSlider(Qt.Orientation.Horizontal)
        level.setAccessibleName("Comfort")
        ask = QPushButton("Delete booking...")
        ask.clicked.connect(self.ask)
        for widget in (group, self.list, self.note, level, ask):
            box.addWidget(widget)
        page.setLayout(box)
        return page

    def ask(self):
        answer = QMessageBox.question(self, "Delete booking", "Delete this booking?")
        say("deleted" if answer == QMessageBox.StandardButton.Yes else "kept")

    def clear(self):
        self.name.clear()
        self.city.clear()
        say("cleared")

    def save(self):
        where = self.list.currentItem()
        say("saved", self.name.text(), self.city.text(), self.count.value(), self.size.currentText(),
            self.code.text(), self.window.isChecked(), self.meal.isChecked(),
            "first" if self.first.isChecked() else "economy", where.text() if where else "",
            self.note.toPlainText())


app = QApplication([])
form = Form()
form.show()
app.exec()
