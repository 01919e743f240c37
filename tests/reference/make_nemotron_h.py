"""Writes a tiny random model of the family, and the results of Hugging Face transformers.

    python make_nemotron_h.py [--out ../golden/transformers]

Language: NemotronHForCausalLM.  Vision: RadioModel, the pixel shuffle and projector of
NemotronH_Omni_Reasoning_V3.  The weights have the published names (fp32), so that they
can be read like any checkpoint.  Also stored: the token ids, the pixels, the output of every block and
layer, and the logits.  transformers clamps time steps to at least time_step_min, unlike the
published code, so the limits of its mixers are set to (0, inf).

Made with torch 2.13.0 and transformers 5.23.0, which are only needed to recreate the files.
"""
import argparse
import json
import os

import torch
import transformers
from safetensors.torch import save_file
from transformers import NemotronHConfig, NemotronHForCausalLM, RadioConfig
from transformers.models.nemotron_h_omni.modeling_nemotron_h_omni import (
    NemotronH_Omni_Reasoning_V3 as Omni,
    NemotronH_Omni_Reasoning_V3MultiModalProjector as Projector)
from transformers.models.radio.modeling_radio import RadioModel

SEED, TILE, IMAGE, VOCAB = 7, 64, 60, 64
PATTERN = "M*-MM-*M-"
KIND = {"M": "linear_attention", "*": "full_attention", "-": "mlp"}


def language():
    c = NemotronHConfig(
        vocab_size=VOCAB, hidden_size=24, layers_block_type=[KIND[k] for k in PATTERN], intermediate_size=40,
        num_attention_heads=4, num_key_value_heads=2, head_dim=10, mamba_num_heads=6, mamba_head_dim=8,
        ssm_state_size=12, n_groups=3, conv_kernel=4, chunk_size=8,
        max_position_embeddings=512, eos_token_id=12, attn_implementation="eager")
    lm = NemotronHForCausalLM(c).float()
    for m in lm.modules():
        if hasattr(m, "time_step_limit"):
            m.time_step_limit = (0.0, float("inf"))
    return lm, c


def vision():
    c = RadioConfig(hidden_size=20, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=2.0, max_img_size=128,
                    num_cls_tokens=2, num_registers=3, attn_implementation="eager")
    return RadioModel(c), c


@torch.no_grad()
def fill(module, rng):
    """Generates weights with which every part matters, in the order of the names."""
    for name, p in sorted(module.named_parameters()):
        if "layer_scale" in name:
            continue
        draw = torch.randn(p.shape, generator=rng)
        if name.endswith("A_log"):
            p.copy_(0.5 + 0.6 * draw)
        elif name.endswith("dt_bias"):
            p.copy_(-1 + draw)
        elif p.dim() == 1 and name.endswith(("weight", "D")):
            p.copy_(1 + 0.2 * draw)
        elif p.dim() == 1:
            p.copy_(0.2 * draw)
        else:
            p.copy_(draw * (1.5 / p.shape[-1] ** 0.5 if p.dim() == 2 else 0.4))
    return module.eval()


def published(lm, radio, projector):
    """Returns state_dict entries under the names of the published checkpoint."""
    out = {}
    for k, v in lm.state_dict().items():
        out["language_model." + k.replace("model.", "backbone.", 1)] = v
    vit, s = "vision_model.radio_model.model.", radio.state_dict()
    for old, new in (("patch_projection.weight", "embedder.weight"), ("position_embedding", "pos_embed"),
                     ("cls_register_token", "cls_token.token")):
        out[f"{vit}patch_generator.{new}"] = s[f"embeddings.{old}"]
    for k, v in s.items():
        if k.startswith("encoder.layer.") and not any(w in k for w in ("layer_scale", "attention")):
            out[vit + k.replace("encoder.layer.", "blocks.")] = v
    for i in range(radio.config.num_hidden_layers):
        at = f"encoder.layer.{i}.attention."
        for part in ("weight", "bias"):
            out[f"{vit}blocks.{i}.attn.qkv.{part}"] = torch.cat([s[f"{at}{n}_proj.{part}"] for n in "qkv"])
            out[f"{vit}blocks.{i}.attn.proj.{part}"] = s[f"{at}o_proj.{part}"]
    for old, new in (("layer_norm", "mlp1.0"), ("linear_1", "mlp1.1"), ("linear_2", "mlp1.3")):
        out[new + ".weight"] = projector.state_dict()[old + ".weight"]
    return {k: v.contiguous().clone() for k, v in out.items()}


def config_json(c, r):
    names = ("vocab_size hidden_size intermediate_size num_attention_heads num_key_value_heads head_dim "
             "mamba_num_heads mamba_head_dim ssm_state_size n_groups conv_kernel chunk_size use_conv_bias "
             "max_position_embeddings layer_norm_epsilon mlp_hidden_act mamba_hidden_act model_type").split()
    return {"force_image_size": TILE, "patch_size": 16, "downsample_ratio": 0.5, "ps_version": "v2",
            "projector_hidden_size": 36, "norm_mean": [0.5] * 3, "norm_std": [0.25] * 3,
            "img_context_token_id": IMAGE,
            "llm_config": {k: getattr(c, k) for k in names} | {"hybrid_override_pattern": PATTERN},
            "vision_config": {"hidden_size": r.hidden_size, "num_hidden_layers": r.num_hidden_layers,
                              "num_attention_heads": r.num_attention_heads,
                              "intermediate_size": int(r.hidden_size * r.mlp_ratio)}}


@torch.no_grad()
def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "../golden/transformers"))
    out = p.parse_args().out
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(SEED)
    rng = torch.Generator().manual_seed(SEED)
    lm, c = language()
    radio, r = vision()
    projector = Projector(input_size=4 * r.hidden_size, hidden_size=36, output_size=c.hidden_size, eps=1e-5)
    for m in (lm, radio, projector):
        fill(m, rng)

    arrays, blob = [], bytearray()

    def keep(name, x):
        arrays.append({"name": name, "shape": list(x.shape), "offset": len(blob)})
        blob.extend(x.contiguous().numpy().tobytes())

    pixels = torch.randn((1, 3, TILE, TILE), generator=rng)     # normalised already
    keep("pixels", pixels[0])
    radio.make_preprocessor_external()
    got = []
    hooks = [b.register_forward_hook(lambda m, i, o: got.append(o)) for b in radio.encoder.layer]
    seen = radio(pixels)
    for h in hooks:
        h.remove()
    for i, x in enumerate(got):
        keep(f"block{i}", x[0])
    side = TILE // 16
    grid = Omni.pixel_shuffle(None, seen.features.view(1, side, side, -1), 0.5)
    rows = projector(grid.flatten(1, 2))[0]
    keep("rows", rows)

    ids = torch.randint(0, 50, (37,), generator=rng)
    ids[11:11 + len(rows)] = IMAGE
    x = lm.get_input_embeddings()(ids)
    x[ids == IMAGE] = rows
    full = lm(inputs_embeds=x[None], output_hidden_states=True, use_cache=False, logits_to_keep=0)
    keep("ids", ids.to(torch.int32))
    for i, h in enumerate(full.hidden_states[1:-1]):            # the last entry is after norm_f
        keep(f"layer{i}", h[0])
    keep("logits", full.logits[0])

    part = lm(inputs_embeds=x[None, :20], use_cache=True)
    for t in range(20, len(ids)):
        part = lm(inputs_embeds=x[None, t:t + 1], past_key_values=part.past_key_values, use_cache=True)
    print("with its own cache transformers differs from itself by",
          (part.logits[0, -1] - full.logits[0, -1]).abs().max().item())

    save_file(published(lm, radio, projector), os.path.join(out, "model.safetensors"))
    json.dump(config_json(c, r), open(os.path.join(out, "config.json"), "w"), indent=1)
    json.dump({"generator": "make_nemotron_h.py", "seed": SEED, "torch": torch.__version__,
               "transformers": transformers.__version__, "arrays": arrays},
              open(os.path.join(out, "reference.json"), "w"), indent=1)
    open(os.path.join(out, "reference.bin"), "wb").write(blob)
    print(f"{out}: {len(arrays)} arrays, {len(blob)} bytes")


if __name__ == "__main__":
    main()
