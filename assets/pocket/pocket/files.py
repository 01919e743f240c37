"""Reads and writes safetensors files of BF16 tensors, and the configuration files of a published model."""

import json
import os

import torch

from . import MODEL

MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # per channel, RGB
TOWER = "vision_model.radio_model.model."  # prefix of the vision encoder in a published model


def read(path):
    """Returns ({name: bf16 tensor}, metadata) of a safetensors file."""
    with open(path, "rb") as f:
        raw = f.read()
    n = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + n])
    about, out = header.pop("__metadata__", {}), {}
    for name, t in header.items():
        a, b = (8 + n + o for o in t["data_offsets"])
        flat = torch.frombuffer(bytearray(raw[a:b]), dtype=torch.int16).view(torch.bfloat16)
        out[name] = flat.view(t["shape"])
    return out, about


def write(path, tensors, about=None):
    """Writes tensors, rounded to bf16, in the order given."""
    header, at = {"__metadata__": about or {"format": "pt"}}, 0
    for name, v in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(v.shape), "data_offsets": [at, at + 2 * v.numel()]}
        at += 2 * v.numel()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(f"{path}.part", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for v in tensors.values():
            f.write(v.detach().to(torch.bfloat16).contiguous().view(torch.int16).numpy().tobytes())
    os.replace(f"{path}.part", path)


# Shapes of the parts and their names in config.json
BOTH = dict(hidden="hidden_size", heads="num_attention_heads", mlp="intermediate_size")
VIT = BOTH | dict(blocks="num_hidden_layers")
LM = BOTH | dict(pattern="hybrid_override_pattern", vocab="vocab_size", groups="n_groups")
LM |= dict(kv_heads="num_key_value_heads", head_dim="head_dim")
LM |= dict(mamba_heads="mamba_num_heads", mamba_head_dim="mamba_head_dim", state="ssm_state_size")
LM |= dict(conv="conv_kernel", chunk="chunk_size", eps="layer_norm_epsilon")


def shapes(directory):
    """Returns the shapes (vit, lm) of a published model."""
    with open(os.path.join(directory, "config.json")) as f:
        config = json.load(f)
    vit, lm = config["vision_config"], config["llm_config"]
    skip = vit["args"]["register_multiple"]
    out = {ours: vit[theirs] for ours, theirs in VIT.items()} | {"skip": skip, "eps": 1e-6}
    return out, {ours: lm[theirs] for ours, theirs in LM.items()}


def write_model(out, vit, lm, projector, side, tensors):
    """Writes a published model: tensors {published name: tensor}, and config.json of ../model adapted to the
    shapes.

    `side` is the side of the position table in pixels.
    """
    os.makedirs(out, exist_ok=True)
    with open(MODEL / "config.json") as f:
        config = json.load(f)
    config |= {"vit_hidden_size": vit["hidden"], "projector_hidden_size": projector}
    config["llm_config"] |= {theirs: lm[ours] for ours, theirs in LM.items()}
    config["llm_config"]["num_hidden_layers"] = len(lm["pattern"])
    config["vision_config"] |= {theirs: vit[ours] for ours, theirs in VIT.items()} | {"max_resolution": side}
    config["vision_config"]["args"] |= {"register_multiple": vit["skip"], "cpe_max_size": side}
    with open(os.path.join(out, "config.json"), "w") as f:
        json.dump(config, f, indent=1, ensure_ascii=False)
        f.write("\n")
    write(os.path.join(out, "model.safetensors"), dict(sorted(tensors.items())))
