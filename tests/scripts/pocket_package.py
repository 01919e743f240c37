#!/usr/bin/env python3
"""Checks the training package assets/pocket without training anything.

Imports every module, looks for import cycles, compares the vocabulary with the published tokenizer, and converts actions
to text and back.  Modules whose third-party packages are missing are listed and skipped.
"""
import ast
import importlib
import json
import pathlib
import sys

HOME = pathlib.Path(__file__).resolve().parents[2] / "assets/pocket"
STANDALONE = ("gtk_windows", "qt_windows", "tk_windows")  # run with the system's Python
sys.path.insert(0, str(HOME))


def modules():
    """Returns {module: file} of the package, without the standalone programs."""
    files = [f for f in (HOME / "pocket").rglob("*.py") if f.stem not in STANDALONE]
    names = [".".join(f.relative_to(HOME).with_suffix("").parts).removesuffix(".__init__") for f in files]
    return dict(zip(names, files))


def imports(name, file, known):
    """Returns the modules of the package that a module imports."""
    package = name.split(".") if file.stem == "__init__" else name.split(".")[:-1]
    out = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join(package[: len(package) - node.level + 1] + ([node.module] if node.module else []))
            out |= {f"{base}.{a.name}" if f"{base}.{a.name}" in known else base for a in node.names}
    return out - {name}


def find_cycle(graph):
    """Returns a list of modules that import each other, or None."""
    done, path = set(), []

    def visit(name):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return None
        path.append(name)
        for other in graph[name]:
            found = visit(other)
            if found:
                return found
        done.add(path.pop())
        return None

    return next(filter(None, map(visit, graph)), None)


def check_vocabulary():
    from pocket import tokenizer
    stored = json.loads((HOME / "model/tokenizer.json").read_text())
    added = {t["id"]: t["content"] for t in stored["added_tokens"]}
    assert added == tokenizer.NAME, "tokenizer.py: the names of tokens differ from model/tokenizer.json"
    assert len(stored["model"]["vocab"]) == tokenizer.VOCAB


def check_dialect():
    from pocket import dialect, tokenizer
    drag = {"verb": "drag", "x": 10, "y": 20, "label": "A", "to": {"x": 30, "y": 40, "label": ""}}
    said = dialect.spell(drag, 2.0)
    assert tokenizer.decode(tokenizer.spelled(said)) == said
    assert dialect.parse(said) == {"verb": "drag", "label": "A", "text": "", "x": 21, "y": 41, "to": {"label": "", "x": 61, "y": 81}}
    said = dialect.spell({"verb": "write", "x": 199, "y": 5, "label": "Name <x>", "text": "Zoë 1"})
    assert said == "<write>Name (x)<at><12><.3><0><.2>Zoë 1", said
    assert dialect.parse(said)["text"] == "Zoë 1"
    assert dialect.parse("<click>OK") is None, "a click without a place is invalid"


def main():
    found, skipped = modules(), set()
    cycle = find_cycle({name: imports(name, file, found) for name, file in found.items()})
    assert cycle is None, "import cycle: " + " -> ".join(cycle)
    for name in found:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as e:
            assert not e.name.startswith("pocket"), f"{name}: {e}"
            skipped.add(e.name)
    check_vocabulary()
    check_dialect()
    print(f"{len(found)} modules" + (f"; not installed: {', '.join(sorted(skipped))}" if skipped else ""))


if __name__ == "__main__":
    main()
