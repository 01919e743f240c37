"""Writes a matrix of 4-bit integers in GPTQ's two formats, and its values as decoded by auto-round.

    python make_gptq.py        into ../golden/gptq

Word i of "codes" and of "zeros" is the upper half of mixed(SEED, name, i) (drawn.py).  Scale i has sign and fraction of
the top 16 bits of mixed(SEED, "scales", i) and an exponent between -9 and -2, so that all are finite and of similar size.
"order" sorts the columns by mixed(SEED, "order", k); column k in that order is in group k / 128.

auto-round is not imported, because it requires transformers: its two layers are extracted from their files
(pip install --no-deps auto-round==0.16.1).  Their scales are f32 here, so that nothing is rounded.
"""
import ast
import importlib.util
import math
import os
import types

import numpy as np
import torch

import drawn

SEED, ROWS, COLS, GROUP = 43, 32, 384, 128


def layer(file):
    """Returns class QuantLinear from a file of auto-round."""
    base = importlib.util.find_spec("auto_round_extension").submodule_search_locations[0]
    path = os.path.join(base, "torch", file)
    with open(path) as f:
        tree = ast.parse(f.read(), path)
    tree.body = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "QuantLinear"]
    names = {"torch": torch, "nn": torch.nn, "math": math, "np": np, "SUPPORTED_BITS": (4,),
             "GenericBitPackingMixin": type("Nothing", (), {}), "requires_generic_bit_packing": lambda bits: False,
             "transformers": types.SimpleNamespace()}
    exec(compile(tree, path, "exec"), names)
    return names["QuantLinear"]


def words(name, *shape):
    n = int(np.prod(shape))
    return torch.from_numpy((drawn.mixed(SEED, name, 0, n) >> np.uint64(32)).astype(np.uint32).view(np.int32).reshape(shape))


def scales(*shape):
    h = (drawn.mixed(SEED, "scales", 0, int(np.prod(shape))) >> np.uint64(48)).astype(np.uint16)
    h = h & 0x83ff | (6 + (h >> 10 & 7)) << 10
    return torch.from_numpy(h.astype(np.uint16).view(np.float16).reshape(shape))


def groups(moved):
    order = np.argsort(drawn.mixed(SEED, "order", 0, COLS)) if moved else np.arange(COLS)
    out = np.empty(COLS, np.int32)
    out[order] = np.arange(COLS) // GROUP
    return torch.from_numpy(out)


def numbers(file, moved):
    x = layer(file)(4, GROUP, COLS, ROWS, False, g_idx=True)
    x.qweight.copy_(words("codes", COLS // 8, ROWS))
    x.qzeros.copy_(words("zeros", COLS // GROUP, ROWS // 8))
    x.scales = scales(COLS // GROUP, ROWS).float()
    x.g_idx.copy_(groups(moved))
    return x(torch.eye(COLS)).T


if __name__ == "__main__":
    out = drawn.Fixture("gptq", "make_gptq.py", SEED, ["auto-round", "torch", "numpy"])
    out.keep("first", numbers("qlinear_torch_zp.py", False))
    out.keep("first moved", numbers("qlinear_torch_zp.py", True))
    out.keep("second moved", numbers("qlinear_torch.py", True))
    out.write()
