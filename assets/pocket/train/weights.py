"""What a stage has made, as a file of the tree: a stage goes on from it alone, on any machine.

    python weights.py keep --run RUN --out ../wide/eyes.safetensors [--figures '{"letters": 0.95}']
    python weights.py split FILE --model ../model --out FILE        what a published model does not have of it
    python weights.py tell FILE...

Design.  The average of a run's parameters, rounded to bf16, in the safetensors container; its metadata says the
shape, the core minutes and steps behind it and what was measured.  The optimiser's state is not kept: it is
made again within the hundred steps that a run warms up.  `load` gives the same for a run's folder, its
last.pt or such a file.

The weights that are shipped are there already: of a run that was published, a file that `split` wrote holds only what
a published model has no place for (heads that only training asks), and names that model, relative to
itself, with its digest; `load` takes the rest from there, bit by bit what it was.
"""

import argparse
import hashlib
import json
import math
import os

import torch

import tower


HEADS = "vision_model.heads."  # of a published model: what the program asks of patches
KEPT = ("head.where", "head.aim", "head.find.")  # heads that only training asks


def last(run):
    return os.path.join(run, "last.pt") if os.path.isdir(run) else run


def read(path):
    """(header without its metadata, metadata, place of the tensors, all bytes) of a container."""
    with open(path, "rb") as f:
        raw = f.read()
    n = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + n])
    return header, header.pop("__metadata__", {}), 8 + n, raw


def values(container, name):
    header, _, base, raw = container
    a, b = (base + o for o in header[name]["data_offsets"])
    flat = torch.frombuffer(bytearray(raw[a:b]), dtype=torch.int16).view(torch.bfloat16)
    return flat.view(header[name]["shape"])


def of_block(ours, theirs):
    """{name of a run's parameter: its name in a published model} of a block of the tower's kind."""
    out = {}
    for a, b in (("qkv", "attn.qkv"), ("proj", "attn.proj"), ("fc1", "mlp.fc1"), ("fc2", "mlp.fc2")):
        out |= {f"{ours}{a}": f"{theirs}{b}.weight", f"{ours}{a}_bias": f"{theirs}{b}.bias"}
    return out


def published(names, blocks):
    """{name of a run's parameter: its name in a published model}, those that one has."""
    eyes = {"embedder": "patch_generator.embedder.weight", "prefix": "patch_generator.cls_token.token"}
    for i in range(blocks):
        eyes |= of_block(f"{i}.", f"blocks.{i}.")
    eyes = {n: "vision_model.radio_model.model." + v for n, v in eyes.items()}
    there = [n for n in names if n.startswith("head.") and not n.startswith(KEPT)]
    eyes |= {n: HEADS + n.removeprefix("head.").replace("finder.", "find.") for n in there}
    eyes |= {n: v for n, v in of_block("head.block.", HEADS + "block.").items() if n in there}
    return {n: eyes.get(n, n) for n in names if n in eyes or n.startswith(("language_model.", "mlp1."))}


def rest_of(path, about):
    """The published model that a file of `split` goes on in."""
    there = os.path.normpath(os.path.join(os.path.dirname(path), about["model"], "model.safetensors"))
    rest = read(there)
    if hashlib.sha256(rest[3]).hexdigest() != about["sha256"]:
        raise SystemExit(f"{path}: {there} is not the model that it was taken from")
    return rest


def load(path):
    """The dictionary that runner.Run saves: shape, names, average, step, core_minutes; figures, if there are."""
    if not path.endswith(".safetensors"):
        return torch.load(last(path), map_location="cpu", weights_only=True)
    own = read(path)
    about, shape = own[1], json.loads(own[1]["shape"])
    at = {n: (own, n) for n in json.loads(about["names"])}
    if "model" in about:
        rest = rest_of(path, about)
        there = published(at, shape.get("blocks", 0))
        at |= {n: (rest, v) for n, v in there.items() if n not in own[0]}
    names = {n: container[0][name]["shape"] for n, (container, name) in at.items()}
    layout = tower.Layout({n: tuple(s) for n, s in names.items()})
    average = torch.zeros(layout.size)
    for n, v in layout.views(average).items():
        v.copy_(values(*at[n]).float())
    return dict(
        shape=shape,
        names=names,
        average=average,
        flat=average,
        step=int(about["step"]),
        core_minutes=float(about["core_minutes"]),
        figures=json.loads(about["figures"]),
    )


def parameters(path):
    """{name: the average of a parameter} of a run or a kept file."""
    saved = load(path)
    return tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(saved["average"])


def write(out, about, tensors):
    """A container of these tensors in bf16; gives its bytes."""
    header, at = {"__metadata__": about}, 0
    for n, v in tensors.items():
        header[n] = {"dtype": "BF16", "shape": list(v.shape), "data_offsets": [at, at + 2 * v.numel()]}
        at += 2 * v.numel()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    with open(f"{out}.part", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for v in tensors.values():
            f.write(v.to(torch.bfloat16).contiguous().view(torch.int16).numpy().tobytes())
    os.replace(f"{out}.part", out)
    return 8 + len(text) + at


def keep(run, out, figures):
    """Writes the run's average to `out`; gives its bytes."""
    saved = torch.load(last(run), map_location="cpu", weights_only=True)
    views = tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(saved["average"])
    if not all(math.isfinite(float(v.sum())) for v in views.values()):
        raise SystemExit(f"{run}: weights that are not finite are not kept")
    about = {
        "format": "pt",
        "names": json.dumps(list(views)),  # their order in the flat vector
        "shape": json.dumps(saved["shape"]),
        "step": str(saved["step"]),
        "core_minutes": f"{saved['core_minutes']:.2f}",
        "figures": json.dumps(figures),
    }
    return write(out, about, views)


def split(path, model, out):
    """Writes what `model` does not have of a kept file; gives its bytes.  What it has must be the same."""
    own, rest = read(path), read(os.path.join(model, "model.safetensors"))
    if "model" in own[1]:
        raise SystemExit(f"{path}: this is split already")
    names = json.loads(own[1]["names"])
    there = published(names, json.loads(own[1]["shape"]).get("blocks", 0))
    for n, v in there.items():
        if v not in rest[0] or not torch.equal(values(own, n).view(torch.int16), values(rest, v).view(torch.int16)):
            raise SystemExit(f"{path}: {model} was not made of this, '{n}' is another")
    about = own[1] | {
        "model": os.path.relpath(model, os.path.dirname(out) or "."),
        "sha256": hashlib.sha256(rest[3]).hexdigest(),
    }
    return write(out, about, {n: values(own, n) for n in names if n not in there})


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    sub = p.add_subparsers(dest="what", required=True)
    k = sub.add_parser("keep")
    k.add_argument("--run", required=True)
    k.add_argument("--out", required=True)
    k.add_argument("--figures", type=json.loads, default={})
    r = sub.add_parser("split")
    r.add_argument("file")
    r.add_argument("--model", required=True)
    r.add_argument("--out", required=True)
    t = sub.add_parser("tell")
    t.add_argument("files", nargs="+")
    a = p.parse_args()
    if a.what == "keep":
        print(f"{a.out}: {keep(a.run, a.out, a.figures) / 1e6:.1f} MB")
        return
    if a.what == "split":
        print(f"{a.out}: {split(a.file, a.model, a.out) / 1e6:.2f} MB")
        return
    for path in a.files:
        _, about, _, _ = read(path)
        print(f"{path}: {about['core_minutes']} core minutes, step {about['step']}, {about['figures']}")


if __name__ == "__main__":
    main()
