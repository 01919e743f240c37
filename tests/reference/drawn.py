"""Random numbers that C can reproduce, and files of reference values.

Weights are generated, not stored: a test writes the same checkpoint from the table in reference.json.  Number i
of tensor NAME is computed with integers, except for one product and one rounding, so that Python and C give the
same bits:

    key  = FNV-1a(NAME) xor SEED * 0x9e3779b97f4a7c15                          64 bits, wrapping
    z    = finalizer of splitmix64 applied to key + (i + 1) * 0x9e3779b97f4a7c15
    s    = sum of the four 16-bit parts of z                                  nearly normal, deviation 37837.2
    x    = bf16( float(s - 131070 + OFFSET) * UNIT )                          OFFSET and UNIT from the table
"""
import json
import os
from importlib import metadata

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
GAMMA, SPREAD, MASK = 0x9e3779b97f4a7c15, 37837.2, (1 << 64) - 1

# ---- numbers ---------------------------------------------------------------------------------------


def fnv(name):
    h = 0xcbf29ce484222325
    for b in name.encode():
        h = (h ^ b) * 0x100000001b3 & MASK
    return h


def mixed(seed, name, first, n):
    """Returns z for i = first .. first + n - 1."""
    key = np.uint64(fnv(name) ^ (seed * GAMMA & MASK))
    with np.errstate(over="ignore"):
        z = key + (np.arange(first, first + n, dtype=np.uint64) + np.uint64(1)) * np.uint64(GAMMA)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        return z ^ (z >> np.uint64(31))


def bf16(x):
    """Rounds f32 values to bf16, to nearest even."""
    u = x.view(np.uint32)
    return ((u + np.uint32(0x7fff) + ((u >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xffff0000)).view(np.float32)


def draw(seed, name, shape, offset, unit):
    n, step = int(np.prod(shape)), 1 << 22
    out = np.empty(n, np.float32)
    for first in range(0, n, step):
        z = mixed(seed, name, first, min(step, n - first))
        s = sum((z >> np.uint64(k)) & np.uint64(0xffff) for k in (0, 16, 32, 48)).astype(np.int64)
        out[first:first + step] = bf16((s - 131070 + offset).astype(np.float32) * np.float32(unit))
    return torch.from_numpy(out.reshape(shape))


def signs(n, column):
    """Returns +1 or -1 for each of n columns, for the random sums by which every row is checked."""
    return torch.from_numpy(1.0 - 2.0 * (mixed(column, "signs", 0, n) >> np.uint64(63)).astype(np.float32))


class Weights:
    """Generates tensors and remembers their parameters."""

    def __init__(self, seed):
        self.seed, self.table, self.values = seed, [], {}

    def add(self, name, shape, spread, mean=0.0):
        unit = float(np.float32(spread / SPREAD))
        offset = round(mean / unit)
        self.table.append({"name": name, "shape": list(shape), "offset": offset, "unit": unit})
        self.values[name] = draw(self.seed, name, shape, offset, unit)


# ---- files ------------------------------------------------------------------------------------------------


class Fixture:
    def __init__(self, name, generator, seed, packages, version=metadata.version):
        self.dir = os.path.join(HERE, "..", "golden", name)
        os.makedirs(self.dir, exist_ok=True)
        self.root = {"generator": generator, "seed": seed, **{p: version(p) for p in packages}}
        self.arrays, self.blob = [], bytearray()

    def keep(self, name, x, rows=None):
        """Stores all rows of x, or those listed."""
        x = torch.as_tensor(x)
        x = x if rows is None else x[rows]
        x = x.to(torch.int32 if not x.is_floating_point() else torch.float32).contiguous()
        entry = {"name": name, "shape": list(x.shape), "offset": len(self.blob)}
        self.arrays.append(entry if rows is None else entry | {"rows": list(rows)})
        self.blob.extend(x.numpy().tobytes())

    def stage(self, name, x, rows):
        """Stores some rows of x, and for every row its norm and two sums with random signs."""
        x = x.double()
        if rows is not None:
            self.keep(name, x, rows)
        pair = [(x * signs(x.shape[1], k).double()).sum(1) for k in (1, 2)]
        self.keep(name + ".sums", torch.stack([*pair, x.norm(dim=1)], 1))

    def write(self, config=None, **more):
        with open(os.path.join(self.dir, "reference.bin"), "wb") as f:
            f.write(self.blob)
        root = self.root | more | {"arrays": self.arrays}
        with open(os.path.join(self.dir, "reference.json"), "w") as f:
            f.write("{\n" + ",\n".join(f"{json.dumps(k)}: " + (
                "[\n " + ",\n ".join(json.dumps(e) for e in v) + "\n]" if isinstance(v, list) and v and isinstance(v[0], dict)
                else json.dumps(v)) for k, v in root.items()) + "\n}\n")
        if config:
            with open(os.path.join(self.dir, "config.json"), "w") as f:
                json.dump(config, f, indent=1)
                f.write("\n")
        print(f"{self.dir}: {len(self.arrays)} arrays, {len(self.blob)} bytes")
