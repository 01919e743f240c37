"""Writes f32 numbers and the e4m3 codes to which torch rounds them.

    python make_f8.py        into ../golden/f8

The numbers are the values of all codes, those halfway between two of them and their f32 neighbours, numbers around
448, zeros, infinities, NaN, and random ones of many sizes.  Beyond 448 torch gives NaN; numbers are clamped first,
as in servers with e4m3 keys and values.

Bytes are packed four to a number.
"""
import golden

import torch

SEED, RANDOM = 83, 512


def numbers():
    codes = torch.arange(127, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    edges = torch.tensor([447.99997, 448.00003, 463.99997, 464, 464.00003, 480, 1e30, 3e38, 1e-45, 1e-30])
    hard = torch.cat([codes, (codes[1:] + codes[:-1]) / 2, edges])
    bits = hard.view(torch.int32)
    hard = torch.cat([hard, (bits + 1).view(torch.float32), (bits.clamp(min=1) - 1).view(torch.float32)])
    sizes = torch.logspace(-5, 4, RANDOM)
    rest = torch.cat([golden.draw(SEED, "numbers", (RANDOM,), 0, 1 / golden.SPREAD) * sizes,
                      torch.tensor([torch.inf, -torch.inf, torch.nan, -torch.nan])])
    x = torch.cat([hard, -hard, rest])
    return torch.cat([x, torch.zeros(-x.numel() % 4)])


def main():
    out = golden.Fixture("f8", "make_f8.py", SEED, ["torch", "numpy"])
    x = numbers()
    codes = x.clamp(-448, 448).to(torch.float8_e4m3fn)
    out.keep("numbers", x)
    out.keep("codes", codes.contiguous().view(torch.uint8).view(torch.int32))
    out.write()


main()
