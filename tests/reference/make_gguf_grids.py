"""Writes src/ops/gguf_grids.bin: the grids of the IQ formats, from the gguf package's tables.

    python make_gguf_grids.py > ../../src/ops/gguf_grids.bin

The package lists each grid row as 2-bit or 4-bit indices into a list of magnitudes.  A row becomes one 16-bit word:
2 bits for each of 8 numbers, or 4 bits for each of 4, the first number lowest.  Words are little-endian.
Made with gguf 0.19.0.
"""
import sys

import numpy as np
from gguf import quants

GRIDS = [quants.IQ2_XXS, quants.IQ2_XS, quants.IQ2_S, quants.IQ3_XXS, quants.IQ3_S, quants.IQ1_S]


def words(kind):
    """Returns one word for each row of a grid."""
    kind.init_grid()
    rows = kind.grid.reshape(kind.grid_shape).astype(np.int64)
    index = np.vectorize({v: i for i, v in enumerate(kind.grid_map)}.get)(rows)
    bits = 16 // kind.grid_shape[1]
    return (index << (bits * np.arange(kind.grid_shape[1]))).sum(axis=1)


if __name__ == "__main__":
    for kind in GRIDS:
        sys.stdout.buffer.write(words(kind).astype("<u2").tobytes())
