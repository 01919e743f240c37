"""Writes a product with FP8 weights in blocks of 128 x 128 with f32 scales, as computed by torch.

    python make_fp8_blocks.py        into ../golden/fp8_blocks

Byte i of the weight is the top byte of mixed(SEED, "codes", i) (drawn.py) with NaN codes replaced by zero.  Scales and
activations are random f32 numbers that bf16 cannot represent.  `values` are rows of the dequantized weight in f32, `product`
is x W^T, summed in f64.
"""
import drawn
import numpy as np
import torch

SEED, ROWS, COLS, TOKENS = 97, 200, 300, 5


def main():
    out = drawn.Fixture("fp8_blocks", "make_fp8_blocks.py", SEED, ["torch", "numpy"])
    codes = (drawn.mixed(SEED, "codes", 0, ROWS * COLS) >> np.uint64(56)).astype(np.uint8)
    codes[(codes & 127) == 127] = 0
    weight = torch.from_numpy(codes).view(torch.float8_e4m3fn).reshape(ROWS, COLS).float()
    random = torch.Generator().manual_seed(SEED)
    scales = torch.rand((ROWS + 127) // 128, (COLS + 127) // 128, generator=random) * 0.02 + 1e-4
    x = torch.randn(TOKENS, COLS, generator=random)
    whole = scales.repeat_interleave(128, 0)[:ROWS].repeat_interleave(128, 1)[:, :COLS]
    values = weight * whole
    out.keep("scales", scales)
    out.keep("x", x)
    out.keep("values", values, [0, 127, 128, ROWS - 1])
    out.keep("product", (x.double() @ values.double().T).float())
    out.write()


main()
