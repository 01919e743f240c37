"""What a stage has made, as a file of the tree: a stage goes on from it alone, on any machine.

    python weights.py keep --run RUN --out ../wide/eyes.safetensors [--figures '{"letters": 0.95}']
    python weights.py tell FILE...

Design.  The average of a run's parameters, rounded to bf16, in the safetensors container; its metadata says the
shape, the core minutes and steps behind it and what was measured.  The optimiser's state is not kept: it is
made again within the hundred steps that a run warms up.  `load` gives the same for a run's folder, its
last.pt or such a file.
"""

import argparse
import json
import math
import os

import torch

import tower


def last(run):
    return os.path.join(run, "last.pt") if os.path.isdir(run) else run


def read(path):
    """(header without its metadata, metadata, place of the tensors, all bytes) of a container."""
    with open(path, "rb") as f:
        raw = f.read()
    n = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + n])
    return header, header.pop("__metadata__", {}), 8 + n, raw


def load(path):
    """The dictionary that runner.Run saves: shape, names, average, step, core_minutes; figures, if there are."""
    if not path.endswith(".safetensors"):
        return torch.load(last(path), map_location="cpu", weights_only=True)
    header, about, base, raw = read(path)
    names = json.loads(about["names"])
    layout = tower.Layout({n: tuple(header[n]["shape"]) for n in names})
    average = torch.zeros(layout.size)
    for n, v in layout.views(average).items():
        a, b = (base + o for o in header[n]["data_offsets"])
        flat = torch.frombuffer(bytearray(raw[a:b]), dtype=torch.int16).view(torch.bfloat16)
        v.copy_(flat.float().view(v.shape))
    return dict(
        shape=json.loads(about["shape"]),
        names={n: header[n]["shape"] for n in names},
        average=average,
        flat=average,
        step=int(about["step"]),
        core_minutes=float(about["core_minutes"]),
        figures=json.loads(about["figures"]),
    )


def keep(run, out, figures):
    """Writes the run's average to `out`; gives its bytes."""
    saved = torch.load(last(run), map_location="cpu", weights_only=True)
    views = tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(saved["average"])
    if not all(math.isfinite(float(v.sum())) for v in views.values()):
        raise SystemExit(f"{run}: weights that are not finite are not kept")
    header, at = {"__metadata__": {"format": "pt"}}, 0
    header["__metadata__"] |= {
        "names": json.dumps(list(views)),  # their order in the flat vector
        "shape": json.dumps(saved["shape"]),
        "step": str(saved["step"]),
        "core_minutes": f"{saved['core_minutes']:.2f}",
        "figures": json.dumps(figures),
    }
    for n, v in views.items():
        header[n] = {"dtype": "BF16", "shape": list(v.shape), "data_offsets": [at, at + 2 * v.numel()]}
        at += 2 * v.numel()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    with open(f"{out}.part", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for v in views.values():
            f.write(v.to(torch.bfloat16).contiguous().view(torch.int16).numpy().tobytes())
    os.replace(f"{out}.part", out)
    return 8 + len(text) + at


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    sub = p.add_subparsers(dest="what", required=True)
    k = sub.add_parser("keep")
    k.add_argument("--run", required=True)
    k.add_argument("--out", required=True)
    k.add_argument("--figures", type=json.loads, default={})
    t = sub.add_parser("tell")
    t.add_argument("files", nargs="+")
    a = p.parse_args()
    if a.what == "keep":
        print(f"{a.out}: {keep(a.run, a.out, a.figures) / 1e6:.1f} MB")
        return
    for path in a.files:
        _, about, _, _ = read(path)
        print(f"{path}: {about['core_minutes']} core minutes, step {about['step']}, {about['figures']}")


if __name__ == "__main__":
    main()
