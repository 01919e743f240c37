"""kernels.c and kernels_lm.c (and kernels_amx.c, where the processor can do that) from Python: compiled for this
machine when it is first needed, called with tensors.

Every argument that is a tensor goes as the address of its (contiguous) data.
"""

import ctypes
import hashlib
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = [
    "-O3",
    "-march=native",
    "-mprefer-vector-width=512",
    "-ffast-math",
    "-fno-math-errno",
    "-shared",
    "-fPIC",
]


FEATURES = set(open("/proc/cpuinfo").read().split())
TILES = bool({"amx_bf16", "avx512_bf16"} & FEATURES)  # what amx.h has the tiles of, or does with vectors: as half.h asks
PRODUCTS = torch.bfloat16 if TILES else torch.float32  # elsewhere the library takes fifty times as long in bf16


def build():
    sources = [HERE / "kernels.c", HERE / "kernels_lm.c"] + ([HERE / "kernels_amx.c"] if TILES else [])
    name = hashlib.sha256(
        b"".join(s.read_bytes() for s in [*sources, *sorted(HERE.glob("*.h"))])
        + " ".join(FLAGS).encode()
        + open("/proc/cpuinfo", "rb").read(600)
    ).hexdigest()[:16]
    cache = pathlib.Path(os.environ.get("POCKET_STATE", tempfile.gettempdir())) / "kernels"
    cache.mkdir(parents=True, exist_ok=True)
    out = cache / f"{name}.so"
    if not out.exists():
        part = f"{out}.{os.getpid()}"
        subprocess.run(["gcc", *FLAGS, *map(str, sources), "-o", part, "-lm"], check=True)
        os.replace(part, out)
    return ctypes.CDLL(str(out))


_library = None


def call(name, *args):
    global _library
    if _library is None:
        _library = build()
    out = []
    for a in args:
        if isinstance(a, torch.Tensor):
            assert a.is_contiguous(), name
            out.append(ctypes.c_void_p(a.data_ptr()))
        elif isinstance(a, np.ndarray):
            assert a.flags.c_contiguous, name
            out.append(ctypes.c_void_p(a.ctypes.data))
        elif a is None:
            out.append(ctypes.c_void_p(0))
        elif isinstance(a, float):
            out.append(ctypes.c_float(a))
        else:
            out.append(ctypes.c_int64(int(a)))
    getattr(_library, name)(*out)
