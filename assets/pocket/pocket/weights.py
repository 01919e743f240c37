"""Trained parameters as files of the repository, from which a stage continues on any machine.

A file holds the average of a run's parameters in bf16; its metadata has their names, the shape of the
network, the minutes and steps behind it, and measured figures. Optimizer state is not kept: a run rebuilds
it while its learning rate warms up. After publishing, split() leaves only the heads that training needs and
the published model lacks; the file then names that model, relative to itself, and its SHA-256, and load()
joins both, bit by bit.
"""

import hashlib
import json
import os

import torch

from . import files

HEADS = "vision_model.heads."  # per-patch heads in a published model
TRAINING_ONLY = ("head.where", "head.find.")  # heads without a place in a published model
MATRICES = dict(qkv="attn.qkv", proj="attn.proj", fc1="mlp.fc1", fc2="mlp.fc2")


def of_block(ours, theirs):
    """Returns {parameter: published name} of a transformer block."""
    out = {}
    for a, b in MATRICES.items():
        out |= {f"{ours}{a}": f"{theirs}{b}.weight", f"{ours}{a}_bias": f"{theirs}{b}.bias"}
    return out


def published(names, blocks):
    """Returns {parameter: published name} of those names that a published model has."""
    eyes = {"embedder": "patch_generator.embedder.weight", "prefix": "patch_generator.cls_token.token"}
    for i in range(blocks):
        eyes |= of_block(f"{i}.", f"blocks.{i}.")
    eyes = {n: files.TOWER + v for n, v in eyes.items()}
    heads = [n for n in names if n.startswith("head.") and not n.startswith(TRAINING_ONLY)]
    eyes |= {n: HEADS + n.removeprefix("head.").replace("finder.", "find.") for n in heads}
    eyes |= {n: v for n, v in of_block("head.block.", HEADS + "block.").items() if n in heads}
    return {n: eyes.get(n, n) for n in names if n in eyes or n.startswith(("language_model.", "mlp1."))}


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def load(path):
    """Returns a dict of a kept file: parameters {name: fp32 tensor}, shape, step, core_minutes, figures."""
    own, about = files.read(path)
    names, shape = json.loads(about["names"]), json.loads(about["shape"])
    if "model" in about:
        model = os.path.normpath(os.path.join(os.path.dirname(path), about["model"], "model.safetensors"))
        if digest(model) != about["sha256"]:
            raise SystemExit(f"{path}: cannot load: '{model}' is not the model it was split from")
        rest, _ = files.read(model)
        own |= {n: rest[v] for n, v in published(names, shape.get("blocks", 0)).items() if n not in own}
    out = {"parameters": {n: own[n].float() for n in names}, "shape": shape, "step": int(about["step"])}
    return out | {"core_minutes": float(about["core_minutes"]), "figures": json.loads(about["figures"])}


def keep(path, parameters, shape, step, core_minutes, figures):
    """Writes a run's averaged parameters. Exits if one of them is not finite."""
    bad = [n for n, v in parameters.items() if not torch.isfinite(v).all()]
    if bad:
        raise SystemExit(f"{path}: not written: parameter '{bad[0]}' is not finite")
    about = {"format": "pt", "names": json.dumps(list(parameters)), "shape": json.dumps(shape)}
    about |= {"step": str(step), "core_minutes": f"{core_minutes:.2f}", "figures": json.dumps(figures)}
    files.write(path, parameters, about)


def split(path, model, out):
    """Writes a kept file without the tensors of a published model, which must be equal."""
    own, about = files.read(path)
    if "model" in about:
        raise SystemExit(f"{path}: is split already")
    where = os.path.join(model, "model.safetensors")
    rest, names = files.read(where)[0], json.loads(about["names"])
    there = published(names, json.loads(about["shape"]).get("blocks", 0))
    for n, v in there.items():
        if v not in rest or not torch.equal(own[n].view(torch.int16), rest[v].view(torch.int16)):
            raise SystemExit(f"{path}: cannot split: '{n}' differs from the one in {model}")
    about |= {"model": os.path.relpath(model, os.path.dirname(out) or "."), "sha256": digest(where)}
    files.write(out, {n: own[n] for n in names if n not in there}, about)
