"""Independent implementations shared by the generators of reference values; numbers and files are in drawn.py.

Sources:

    state space layers   mamba-ssm: chunk_state_ref, state_passing_ref, chunk_scan_ref for many tokens,
                         selective_state_update_ref for one, rms_norm_ref for the gated norm
     the rest of the LM   transformers: NemotronHForCausalLM; its own scan is only compared
     tower                timm: Block; transformers: the embedding of RadioModel, with its rule for the position
                          table; its blocks are only compared
     projector            transformers: pixel shuffle and projector of NemotronH_Omni_Reasoning_V3

mamba-ssm is not built.  Its source package (MAMBA_SKIP_CUDA_BUILD=TRUE pip download --no-deps
--no-build-isolation --no-binary :all: mamba-ssm==2.3.2.post1) is unpacked and added to PYTHONPATH.  Its kernels
need triton, which is not available without a GPU, so the reference functions are extracted from its files one by
one.
"""
import ast
import importlib.util
import os
import types
from importlib import metadata

import einops
import torch
import torch.nn.functional as F

try:
    import torchvision  # noqa: F401
except RuntimeError:    # built for another torch: only its Python half is used, which needs these names
    for name in ("nms", "qnms"):
        torch.library.define("torchvision::" + name, "(Tensor a, Tensor b, float c) -> Tensor")
    import torchvision  # noqa: F401

from transformers import NemotronHConfig, NemotronHForCausalLM, RadioConfig
from transformers.models.nemotron_h import modeling_nemotron_h as hf
from transformers.models.nemotron_h_omni.modeling_nemotron_h_omni import (
    NemotronH_Omni_Reasoning_V3 as Omni,
    NemotronH_Omni_Reasoning_V3MultiModalProjector as Projector)
from transformers.models.radio.modeling_radio import RadioModel

from drawn import HERE, SPREAD, Weights, draw, mixed, signs  # noqa: F401
import drawn

VIT = "vision_model.radio_model.model."
KIND = {"M": "linear_attention", "*": "full_attention", "-": "mlp"}

# ---- mamba-ssm -----------------------------------------------------------------------------------------


def mamba_ssm():
    """Extracts the functions from their files."""
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
    """Scans many tokens with mamba-ssm's reference of its chunked kernels; the last chunk is padded with time
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
    """Returns NemotronHForCausalLM with the weights of the published names; c: the llm_config."""
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
    """Returns (RadioModel, timm blocks) with the same weights; v: the vision_config's sizes."""
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


class Fixture(drawn.Fixture):
    def __init__(self, name, generator, seed, packages):
        super().__init__(name, generator, seed, packages, version)
