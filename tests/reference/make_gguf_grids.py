"""Writes src/ops/gguf_grids.c: the grids of the IQ formats, from the gguf package's tables.

    python make_gguf_grids.py > ../../src/ops/gguf_grids.c

The package lists each grid row as 2-bit or 4-bit indices into a list of magnitudes.  A row becomes one 16-bit word:
2 bits for each of 8 numbers, or 4 bits for each of 4, the first number lowest.  Made with gguf 0.19.0.
"""
import numpy as np
from gguf import quants

GRIDS = [
    ("iq2_xxs", quants.IQ2_XXS), ("iq2_xs", quants.IQ2_XS), ("iq2_s", quants.IQ2_S),
    ("iq3_xxs", quants.IQ3_XXS), ("iq3_s", quants.IQ3_S), ("iq1", quants.IQ1_S),
]
HEAD = """/* gguf_grids.c - written by tests/reference/make_gguf_grids.py: see gguf_grids.h. */
#include "ops/gguf_grids.h"

/* clang-format off */"""


def words(kind):
    """Returns one word for each row of a grid."""
    kind.init_grid()
    rows = kind.grid.reshape(kind.grid_shape).astype(np.int64)
    index = np.vectorize({v: i for i, v in enumerate(kind.grid_map)}.get)(rows)
    bits = 16 // kind.grid_shape[1]
    return (index << (bits * np.arange(kind.grid_shape[1]))).sum(axis=1)


if __name__ == "__main__":
    print(HEAD)
    for name, kind in GRIDS:
        of = words(kind)
        print(f"const uint16_t gguf_grid_{name}[{len(of)}] = {{")
        for i in range(0, len(of), 13):
            print("    " + ", ".join(f"{w:#06x}" for w in of[i:i + 13]) + ",")
        print("};\n")
    print("/* clang-format on */")
