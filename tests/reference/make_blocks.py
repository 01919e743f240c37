"""Writes blocks of GGUF files, and their values as decoded by the gguf package.

    python make_blocks.py        into ../golden/blocks

Byte i of format F is the top byte of mixed(SEED, F, i) (drawn.py).  In each block, words that are f16 scales keep sign and
fraction and get an exponent between -9 and -2, so that all numbers are finite and of similar size.  The power of two of
MXFP4 is 2^-7 to 2^0; the scale of IQ1_M, distributed over four words, gets an exponent of -7 to -4.
Made with gguf 0.19.0 and numpy 2.4.6; needs torch for drawn.py only.
"""
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

import drawn

SEED, ROWS, COLS = 41, 2, 512
SCALES = {"Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
          "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
          "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64], "MXFP4": [], "NVFP4": [],
          "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ1_S": [0], "IQ1_M": []}


def blocks(name, rows, cols):
    span, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    n = rows * cols // span
    data = (drawn.mixed(SEED, name, 0, n * size) >> np.uint64(56)).astype(np.uint8).reshape(n, size)
    for at in SCALES[name]:
        h = data[:, at].astype(np.uint16) | data[:, at + 1].astype(np.uint16) << 8
        h = h & 0x83ff | (6 + (h >> 10 & 7)) << 10
        data[:, at], data[:, at + 1] = h & 255, h >> 8
    if name == "MXFP4":
        data[:, 0] = 120 + (data[:, 0] & 7)
    if name == "IQ1_M":
        data[:, 55] = data[:, 55] & 0x8f | 0x20
    return data.reshape(rows, -1)


if __name__ == "__main__":
    out = drawn.Fixture("blocks", "make_blocks.py", SEED, ["gguf", "numpy"])
    for name in SCALES:
        out.keep(name, quants.dequantize(blocks(name, ROWS, COLS), GGMLQuantizationType[name]))
    out.write()
