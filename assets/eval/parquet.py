"""A parquet table as JSON lines: parquet.py FILE FOLDER.

Design.  Grounding sets that come as tables hold their pictures as cells, {"bytes", "path"}.  Each of
them is written to FOLDER as PNG, whatever it was, and its cell becomes the file's name; every other
cell goes through as it is.  What the columns mean is not known here: convert.sh knows.

Needs pyarrow and Pillow.  A picture is named after the table and the row, so that several tables may
share a folder; one that stands in many rows is written once.
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
    """The name of the PNG that holds the picture of a cell."""
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
