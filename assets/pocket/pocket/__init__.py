"""Training of the embedded model of holorun; `python -m pocket` lists the stages, README.md explains them."""

import pathlib

HOME = pathlib.Path(__file__).resolve().parents[1]
MODEL = HOME / "model"  # the published model
KEPT = HOME / "wide"  # heads that only training needs (weights.py)
