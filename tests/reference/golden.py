"""What the generators of reference values share: numbers that C can draw again, other people's code, files.

Weights are drawn, not stored: a test writes the same checkpoint from the table in reference.json.  Number i
of tensor NAME is made of integers alone, up to one product and one rounding, so that Python and C agree in
every bit:

    key  = FNV-1a(NAME) xor SEED * 0x9e3779b97f4a7c15                          64 bits, wrapping
    z    = finalizer of splitmix64 applied to key + (i + 1) * 0x9e3779b97f4a7c15
    s    = sum of the four 16-bit parts of z                                  nearly normal, deviation 37837.2
    x    = bf16( float(s - 131070 + OFFSET) * UNIT )                          OFFSET and UNIT from the table

Whose code computes:

    state space layers   mamba-ssm: chunk_state_ref, state_passing_ref, chunk_scan_ref for many tokens,
                         selective_state_update_ref for one, rms_norm_ref for the gated norm
    the rest of the LM   transformers: NemotronHForCausalLM, whose own scan is compared and not used
    tower                timm: Block; transformers: the embedding of RadioModel, with its rule for the position
                         table, whose blocks are compared and not used
    projector            transformers: pixel shuffle and projector of NemotronH_Omni_Reasoning_V3

mamba-ssm is not built: its source package (MAMBA_SKIP_CUDA_BUILD=TRUE pip download --no-deps
--no-build-isolation --no-binary :all: mamba-ssm==2.3.2.post1) is unpacked and named in PYTHONPATH.  Its
kernels want triton, which a machine without a GPU does not have, so the reference functions are taken out
of its files one by one.
"""
import ast
import importlib.util
import json
import os
import types
from importlib import metadata

import einops
import numpy as np
import torch
import torch.nn.functional as F

try:
    import torchvision  # noqa: F401
except RuntimeError:    # built for another torch: its Python half, which is all that is used, needs these names
    for name in ("nms", "qnms"):
        torch.library.define("torchvision::" + name, "(Tensor a, Tensor b, float c) -> Tensor")
    import torchvision  # noqa: F401

from transformers import NemotronHConfig, NemotronHForCausalLM, RadioConfig
from transformers.models.nemotron_h import modeling_nemotron_h as hf
from transformers.models.nemotron_h_omni.modeling_nemotron_h_omni import (
    NemotronH_Omni_Reasoning_V3 as Omni,
    NemotronH_Omni_Reasoning_V3MultiModalProjector as Projector)
from transformers.models.radio.modeling_radio import RadioModel

HERE = os.path.dirname(os.path.abspath(__file__))
GAMMA, SPREAD, MASK = 0x9e3779b97f4a7c15, 37837.2, (1 << 64) - 1
VIT = "vision_model.radio_model.model."
KIND = {"M": "linear_attention", "*": "full_attention", "-": "mlp"}

# ---- numbers ---------------------------------------------------------------------------------------


def fnv(name):
    h = 0xcbf29ce484222325
    for b in name.encode():
        h = (h ^ b) * 0x100000001b3 & MASK
    return h


def mixed(seed, name, first, n):
    """z for i = first .. first + n"""
    key = np.uint64(fnv(name) ^ (seed * GAMMA & MASK))
    with np.errstate(over="ignore"):
        z = key + (np.arange(first, first + n, dtype=np.uint64) + np.uint64(1)) * np.uint64(GAMMA)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        return z ^ (z >> np.uint64(31))


def bf16(x):
    """f32 values rounded to bf16, to nearest even."""
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
    """+1 or -1 for each of n columns: two of them make the sums that every row is checked by."""
    return torch.from_numpy(1.0 - 2.0 * (mixed(column, "signs", 0, n) >> np.uint64(63)).astype(np.float32))


class Weights:
    """Draws tensors and remembers what was drawn."""

    def __init__(self, seed):
        self.seed, self.table, self.values = seed, [], {}

    def add(self, name, shape, spread, mean=0.0):
        unit = float(np.float32(spread / SPREAD))
        offset = round(mean / unit)
        self.table.append({"name": name, "shape": list(shape), "offset": offset, "unit": unit})
        self.values[name] = draw(self.seed, name, shape, offset, unit)


# ---- mamba-ssm -----------------------------------------------------------------------------------------


def mamba_ssm():
    """The functions alone, out of their files."""
    base = os.path.join(os.path.dirname(importlib.util.find_spec("mamba_ssm").origin), "ops", "triton")
    out = types.SimpleNamespace()
    for short, file, name in (
            ("chunk_state", "ssd_chunk_state", "chunk_state_ref"), ("chunk_scan", "ssd_chunk_scan", "chunk_scan_ref"),
            ("state_passing", "ssd_state_passing", "state_passing_ref"),
            ("step", "selective_state_update", "selective_state_update_ref"), ("norm", "layernorm_gated", "rms_norm_ref")):
        path = os.path.join(base, file + ".py")
        with open(path) as f:
            tree = ast.parse(f.read(), path)
        tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
        names = {"torch": torch, "F": F, "rearrange": einops.rearrange, "repeat": einops.repeat}
        exec(compile(tree, path, "exec"), names)
        setattr(out, short, names[name])
    return out


def version(package):
    if package != "mamba-ssm":
        return metadata.version(package)
    with open(importlib.util.find_spec("mamba_ssm").origin) as f:
        return f.readline().split('"')[1]


MAMBA = mamba_ssm()
CALLS = {"scan": 0, "step": 0, "norm": 0}


def scan(x, dt, A, B, C, chunk_size, D=None, z=None, return_final_states=False, dt_bias=None, dt_softplus=False,
         initial_states=None, dt_limit=None, **_):
    """Many tokens, by mamba-ssm's reference of its chunked kernels; the last chunk is filled up with time
    steps of zero, which neither read nor write."""
    CALLS["scan"] += 1
    assert dt_softplus and z is None and dt_limit == (0.0, float("inf"))
    b, n, heads, p = x.shape
    fill = -n % chunk_size
    delta = F.pad(F.softplus(dt.float() + dt_bias), (0, 0, 0, fill))
    x, B, C = (F.pad(t, (0, 0, 0, 0, 0, fill)) for t in (x, B, C))
    delta = delta.view(b, -1, chunk_size, heads).permute(0, 3, 1, 2)
    sums = torch.cumsum(delta * A.view(1, heads, 1, 1), -1)
    own = MAMBA.chunk_state(B, x, delta, sums)
    first = None if initial_states is None else initial_states.flatten(2)
    before, last = MAMBA.state_passing(own.flatten(3), sums[..., -1], first)
    y = MAMBA.chunk_scan(B, C, x, delta, sums, before.view(own.shape), D=D)[:, :n]
    return (y, last.view(own[:, 0].shape)) if return_final_states else y


def step(state, x, dt, A, B, C, D, z=None, dt_bias=None, dt_softplus=False, **_):
    CALLS["step"] += 1
    return MAMBA.step(state, x, dt.reshape(x.shape), A, B, C, D=D, z=z, dt_bias=dt_bias, dt_softplus=dt_softplus)


def norm(self, hidden_states, gate=None):
    CALLS["norm"] += 1
    return MAMBA.norm(hidden_states, self.weight, None, z=gate, eps=self.variance_epsilon, group_size=self.group_size,
                      norm_before_gate=False)


OWN = (hf.mamba2_chunk_scan, hf.mamba2_selective_state_update, hf.NemotronHRMSNormGated.forward)


def use(theirs):
    hf.mamba2_chunk_scan, hf.mamba2_selective_state_update, hf.NemotronHRMSNormGated.forward = (
        (scan, step, norm) if theirs else OWN)


# ---- models ---------------------------------------------------------------------------------------------


def language(values, c):
    """NemotronHForCausalLM with the weights of the published names; c: the llm_config."""
    keys = ("vocab_size hidden_size intermediate_size num_attention_heads num_key_value_heads head_dim mamba_num_heads "
            "mamba_head_dim ssm_state_size n_groups conv_kernel chunk_size layer_norm_epsilon").split()
    config = NemotronHConfig(
        **{k: c[k] for k in keys}, layers_block_type=[KIND[k] for k in c["hybrid_override_pattern"]],
        max_position_embeddings=4096, eos_token_id=0, attn_implementation="eager")
    with torch.device("meta"):
        lm = NemotronHForCausalLM(config)
    named = {k.replace("language_model.", "", 1).replace("backbone.", "model.", 1): v for k, v in values.items()
             if k.startswith("language_model.")}
    lm.load_state_dict(named, assign=True)
    for m in lm.modules():
        if hasattr(m, "time_step_limit"):
            m.time_step_limit = (0.0, float("inf"))
    return lm.float().eval()


def tower(values, v, tile, skip):
    """(RadioModel, timm blocks) with the same weights; v: the vision_config's sizes."""
    import timm.models.vision_transformer as vit
    side = round(values[VIT + "patch_generator.pos_embed"].shape[1] ** 0.5)
    config = RadioConfig(hidden_size=v["hidden_size"], num_hidden_layers=v["num_hidden_layers"],
                         num_attention_heads=v["num_attention_heads"], mlp_ratio=v["intermediate_size"] / v["hidden_size"],
                         max_img_size=side * 16, num_cls_tokens=2, num_registers=skip - 2, attn_implementation="eager")
    radio = RadioModel(config).eval()
    state = radio.state_dict()
    for old, new in (("patch_projection.weight", "embedder.weight"), ("position_embedding", "pos_embed"),
                     ("cls_register_token", "cls_token.token")):
        state[f"embeddings.{old}"] = values[f"{VIT}patch_generator.{new}"]
    blocks = []
    for i in range(v["num_hidden_layers"]):
        own = {k[len(f"{VIT}blocks.{i}."):]: t for k, t in values.items() if k.startswith(f"{VIT}blocks.{i}.")}
        block = vit.Block(v["hidden_size"], v["num_attention_heads"], config.mlp_ratio, qkv_bias=True,
                          norm_layer=lambda n, **kw: torch.nn.LayerNorm(n, eps=1e-6, **kw)).eval()
        block.load_state_dict(own)
        blocks.append(block)
        for part in ("weight", "bias"):
            for n, t in zip("qkv", own[f"attn.qkv.{part}"].chunk(3)):
                state[f"encoder.layer.{i}.attention.{n}_proj.{part}"] = t
            state[f"encoder.layer.{i}.attention.o_proj.{part}"] = own[f"attn.proj.{part}"]
            for n in ("norm1", "norm2", "mlp.fc1", "mlp.fc2"):
                state[f"encoder.layer.{i}.{n}.{part}"] = own[f"{n}.{part}"]
    radio.load_state_dict(state)
    radio.make_preprocessor_external()
    return radio, blocks


def projector(values, v, width, inner):
    p = Projector(input_size=4 * v["hidden_size"], hidden_size=inner, output_size=width, eps=1e-5).eval()
    p.load_state_dict({f"{new}.weight": values[f"mlp1.{old}.weight"]
                       for old, new in ((0, "layer_norm"), (1, "linear_1"), (3, "linear_2"))})
    return p


def shuffled(x, side):
    return Omni.pixel_shuffle(None, x.reshape(x.shape[0], side, side, -1), 0.5).flatten(1, 2)


# ---- files ------------------------------------------------------------------------------------------------


class Fixture:
    def __init__(self, name, generator, seed, packages):
        self.dir = os.path.join(HERE, "..", "golden", name)
        os.makedirs(self.dir, exist_ok=True)
        self.root = {"generator": generator, "seed": seed, **{p: version(p) for p in packages}}
        self.arrays, self.blob = [], bytearray()

    def keep(self, name, x, rows=None):
        """All rows of x, or those listed."""
        x = torch.as_tensor(x)
        x = x if rows is None else x[rows]
        x = x.to(torch.int32 if not x.is_floating_point() else torch.float32).contiguous()
        entry = {"name": name, "shape": list(x.shape), "offset": len(self.blob)}
        self.arrays.append(entry if rows is None else entry | {"rows": list(rows)})
        self.blob.extend(x.numpy().tobytes())

    def stage(self, name, x, rows):
        """Some rows of x, and of every row two sums with random signs and the length."""
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
