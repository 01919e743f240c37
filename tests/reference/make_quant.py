"""Writes 8-bit and 4-bit codes and their values in torch, ModelOpt and compressed-tensors.

    python make_quant.py        into ../golden/quant

e4m3    all 256 codes, viewed as torch.float8_e4m3fn
e2m1    all 16 codes, by compressed-tensors' unpack_fp4_from_uint8
nvfp4   a matrix with rows of very different sizes, quantized and dequantized by ModelOpt's NVFP4QTensor;
        compressed-tensors must give the same values for the packed bytes
fp8     a matrix cast to torch.float8_e4m3fn after division by its scale, as ModelOpt does per tensor

Bytes are packed four to a number.
"""
import golden

import torch
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from modelopt.torch.quantization.qtensor.fp8_tensor import FP8QTensor
from modelopt.torch.quantization.qtensor.nvfp4_tensor import NVFP4QTensor

SEED, ROWS, COLS = 31, 24, 96


def matrix(name):
    x = golden.draw(SEED, name, (ROWS, COLS), 0, 1 / golden.SPREAD)
    return x * torch.logspace(-2, 1, ROWS).unsqueeze(1)


def packed(x):
    return x.contiguous().view(torch.uint8).view(torch.int32)


def main():
    out = golden.Fixture("quant", "make_quant.py", SEED, ["torch", "nvidia-modelopt", "compressed-tensors", "numpy"])
    out.keep("e4m3", torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float())
    every = torch.arange(0, 256, 17, dtype=torch.uint8)    # 0x00, 0x11, ...
    out.keep("e2m1", unpack_fp4_from_uint8(every.unsqueeze(0), 1, 32, torch.float32)[0, ::2])

    q, scale, whole = NVFP4QTensor.quantize(matrix("nvfp4"), 16)
    bits = q._quantized_data
    values = q.dequantize(torch.float32, scale=scale, double_scale=whole, block_sizes={-1: 16})
    again = unpack_fp4_from_uint8(bits, ROWS, COLS, torch.float32) * (scale.float() * whole).repeat_interleave(16, 1)
    assert torch.equal(values, again)
    out.keep("nvfp4.packed", packed(bits))
    out.keep("nvfp4.scales", packed(scale.flatten()))
    out.keep("nvfp4.global", whole.reshape(1))
    out.keep("nvfp4.values", values)

    q, scale = FP8QTensor.quantize(matrix("fp8"))
    bits = q._quantized_data
    assert bits.dtype == torch.float8_e4m3fn
    out.keep("fp8.codes", packed(bits))
    out.keep("fp8.scale", scale.float().reshape(1))
    out.keep("fp8.values", bits.float() * scale.float())
    out.write()


main()
