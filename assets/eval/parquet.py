"""Prints a parquet table as JSON lines: parquet.py FILE FOLDER.

Tables of grounding sets hold images as cells {"bytes", "path"}. Each image is written to FOLDER as PNG, and its cell
becomes the file's name; other cells are unchanged. convert.sh interprets the columns.

Needs pyarrow and Pillow. An image is named after table and row, so several tables may share a folder; an image that
occurs in several rows is written once.
"""
import hashlib
import io
import json
import pathlib
import sys

try:
    import pyarrow.parquet
    from PIL import Image
except ImportError as missing:
    sys.exit(f"parquet.py: {missing.name} is missing; python3 -m pip install pyarrow pillow")

BATCH = 64


def is_picture(cell):
    return isinstance(cell, dict) and isinstance(cell.get("bytes"), bytes)


def keep(cell, folder, name, known):
    """Returns the name of the PNG for the image of a cell; writes it if it is new."""
    digest = hashlib.sha256(cell["bytes"]).digest()
    if digest not in known:
        Image.open(io.BytesIO(cell["bytes"])).convert("RGB").save(folder / name, "PNG")
        known[digest] = name
    return known[digest]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    table, folder, known, row = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), {}, 0
    folder.mkdir(parents=True, exist_ok=True)
    for batch in pyarrow.parquet.ParquetFile(table).iter_batches(BATCH):
        for cells in batch.to_pylist():
            line = {k: keep(v, folder, f"{table.stem}-{row:05}.png", known) if is_picture(v) else v
                    for k, v in cells.items()}
            print(json.dumps(line, ensure_ascii=False))
            row += 1


if __name__ == "__main__":
    main()
