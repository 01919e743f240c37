"""Writes tiny random models of the next generation, and the results of Hugging Face transformers.

    python make_nemotron_moe.py [--out ../golden/moe]

omni/    NemotronH_Omni_Reasoning_V3 as a whole: mixture-of-experts layers, images as canvases of any size
         (neither is square, one is larger than the position table), experts as separate tensors.
latent/  NemotronHForCausalLM only: latent experts in groups, weights that are not normalized, experts as
         stacked tensors.

The weights have the published names (fp32), including some that must be ignored.  Also stored: ids,
images, pixels, the output of every block and layer, the choices of every router, logits, a greedy
continuation, and the canvas of many image sizes.  As in make_nemotron_h.py the lower limit of the time
steps is that of the published code.

Made with torch 2.13.0, torchvision 0.28.0 and transformers 5.23.0, which are only needed to recreate the
files.
"""
import argparse
import json
import os
import random

import torch
import torchvision
import transformers
from safetensors.torch import save_file
from transformers import NemotronHConfig, NemotronHForCausalLM, RadioConfig
from transformers.models.nemotron_h_omni.configuration_nemotron_h_omni import NemotronH_Omni_Reasoning_V3_Config
from transformers.models.nemotron_h_omni.image_processing_nemotron_h_omni import (
    NemotronH_Omni_Reasoning_V3ImageProcessor as ImageProcessor, get_patch_grid_size)
from transformers.models.nemotron_h_omni.modeling_nemotron_h_omni import NemotronH_Omni_Reasoning_V3 as Omni

from make_nemotron_h import KIND, fill, published

SEED, IMAGE, VOCAB, GREEDY, BUDGET = 11, 60, 64, 40, (24, 80)
KIND = KIND | {"E": "moe"}
PATTERNS = {"omni": "ME*EMEM*-E", "latent": "EM*E"}
KEYS = ("vocab_size hidden_size intermediate_size num_attention_heads num_key_value_heads head_dim mamba_num_heads "
        "mamba_head_dim ssm_state_size n_groups conv_kernel chunk_size use_conv_bias max_position_embeddings "
        "layer_norm_epsilon mlp_hidden_act mamba_hidden_act model_type n_routed_experts num_experts_per_tok "
        "moe_intermediate_size moe_shared_expert_intermediate_size moe_latent_size n_shared_experts n_group "
        "topk_group norm_topk_prob routed_scaling_factor").split()


def text_config(which):
    extra = {"omni": dict(n_routed_experts=9, num_experts_per_tok=3, routed_scaling_factor=2.5),
             "latent": dict(n_routed_experts=12, num_experts_per_tok=4, n_group=4, topk_group=2, moe_latent_size=14,
                            norm_topk_prob=False, routed_scaling_factor=1.25)}[which]
    return NemotronHConfig(
        vocab_size=VOCAB, hidden_size=24, layers_block_type=[KIND[k] for k in PATTERNS[which]], intermediate_size=40,
        num_attention_heads=4, num_key_value_heads=2, head_dim=10, mamba_num_heads=6, mamba_head_dim=8,
        ssm_state_size=12, n_groups=3, conv_kernel=4, chunk_size=8, max_position_embeddings=512, eos_token_id=12,
        moe_intermediate_size=18, moe_shared_expert_intermediate_size=26, attn_implementation="eager", **extra)


def prepared(model, rng):
    fill(model, rng)
    for name, m in sorted(model.named_modules()):
        if hasattr(m, "time_step_limit"):
            m.time_step_limit = (0.0, float("inf"))
        if name.endswith(".gate"):                              # a buffer, which fill skips
            m.e_score_correction_bias.copy_(0.3 * torch.randn(m.e_score_correction_bias.shape, generator=rng))
            m.weight.mul_(2)
        if name.endswith(".experts"):                           # 3-D, which fill does not scale by their depth
            m.up_proj.mul_(1.2)
            m.down_proj.mul_(0.8)
            m.config._experts_implementation = "eager"          # its own loop, not a grouped kernel
    return model


class Files:
    """The arrays of one directory, and hooks that record values while a model runs."""

    def __init__(self, folder):
        self.folder, self.arrays, self.blob, self.hooks = folder, [], bytearray(), []
        os.makedirs(folder, exist_ok=True)

    def keep(self, name, x):
        self.blob.extend(bytes(-len(self.blob) % 8))            # aligned
        self.arrays.append({"name": name, "shape": list(x.shape), "offset": len(self.blob)})
        self.blob.extend(x.contiguous().numpy().tobytes())

    def watch(self, module, fn):
        self.hooks.append(module.register_forward_hook(lambda m, i, o: fn(o)))

    def unwatch(self):
        for h in self.hooks:
            h.remove()

    def watch_language(self, lm):
        for i, layer in enumerate(lm.model.layers):
            self.watch(layer, lambda o, i=i: self.keep(f"layer{i}", (o[0] if isinstance(o, tuple) else o)[0]))
            if hasattr(layer.mixer, "gate"):
                self.watch(layer.mixer.gate, lambda o, i=i: self.keep_choice(i, *o))

    def keep_choice(self, i, logits, weights, ids):
        order = ids.argsort(dim=-1)
        self.keep(f"chosen{i}", ids.gather(1, order).to(torch.int32))
        self.keep(f"weights{i}", weights.gather(1, order))

    def write(self, weights, config):
        save_file(weights, os.path.join(self.folder, "model.safetensors"))
        for name, value in (("config", config), ("reference", {
                "generator": "make_nemotron_moe.py", "seed": SEED, "torch": torch.__version__,
                "torchvision": torchvision.__version__, "transformers": transformers.__version__,
                "arrays": self.arrays})):
            json.dump(value, open(os.path.join(self.folder, name + ".json"), "w"), indent=1)
        open(os.path.join(self.folder, "reference.bin"), "wb").write(self.blob)
        print(f"{self.folder}: {len(self.arrays)} arrays, {len(self.blob)} bytes")


def greedy(logits_of):
    """Returns greedy ids, computed from the whole text each time, so that no cache is involved."""
    out = []
    for _ in range(GREEDY):
        out.append(int(logits_of(out).argmax()))
    return torch.tensor(out, dtype=torch.int32)


def one_by_one(weights):
    """Converts stacked experts to the separate tensors of published checkpoints."""
    out = {}
    for k, v in weights.items():
        if k.endswith((".experts.up_proj", ".experts.down_proj")):
            front, part = k.rsplit(".", 1)
            out |= {f"{front}.{e}.{part}.weight": w.clone() for e, w in enumerate(v)}
        else:
            out[k] = v
    return out


def llm_json(c, which):
    return {k: getattr(c, k) for k in KEYS} | {"hybrid_override_pattern": PATTERNS[which]}


def make_omni(folder, rng):
    f, c = Files(folder), text_config("omni")
    r = RadioConfig(hidden_size=20, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=2.0, max_img_size=128,
                    num_cls_tokens=2, num_registers=3, video_temporal_patch_size=2, attn_implementation="eager")
    model = Omni(NemotronH_Omni_Reasoning_V3_Config(
        vision_config=r, text_config=c, projector_hidden_size=36, vision_hidden_size=20, image_token_id=IMAGE)).float()
    prepared(model, rng)
    low, high = BUDGET
    processor = ImageProcessor(min_num_patches=low, max_num_patches=high, image_mean=[0.5, 0.45, 0.4],
                               image_std=[0.25, 0.26, 0.27])
    images = [torch.randint(0, 256, (3, h, w), generator=rng, dtype=torch.uint8) for h, w in ((52, 150), (155, 50))]
    seen = processor(images, return_tensors="pt")
    for i, im in enumerate(images):
        f.keep(f"image{i}", im.permute(1, 2, 0))
    f.keep("grids", seen.image_grid_hw.to(torch.int32))
    patches = seen.image_grid_hw.prod(-1).tolist()
    for i, x in enumerate(seen.pixel_values.split(patches)):
        f.keep(f"pixels{i}", x)

    for i, b in enumerate(model.vision_model.encoder.layer):
        f.watch(b, lambda o, i=i: f.keep(f"block{i}", o[0]))    # both images in sequence
    rows = model.get_image_features(seen.pixel_values, seen.image_grid_hw).pooler_output
    f.unwatch()
    for i, x in enumerate(rows):
        f.keep(f"rows{i}", x)
    model.vision_final_layernorm = torch.nn.LayerNorm(20, eps=r.layer_norm_eps)    # as with extra predictors
    f.keep("normed0", model.get_image_features(seen.pixel_values, seen.image_grid_hw).pooler_output[0])
    model.vision_final_layernorm = None

    ids = torch.randint(0, 50, (20 + sum(len(x) for x in rows),), generator=rng)
    at = 5
    for x in rows:
        ids[at:at + len(x)] = IMAGE
        at += len(x) + 7
    f.keep("ids", ids.to(torch.int32))

    def run(more):
        all_ids = torch.cat([ids, torch.tensor(more, dtype=ids.dtype)])
        return model(input_ids=all_ids[None], pixel_values=seen.pixel_values, image_grid_hw=seen.image_grid_hw,
                     use_cache=False).logits[0, -1]

    f.watch_language(model.language_model)
    f.keep("logits", run([]))
    f.unwatch()
    f.keep("greedy", greedy(run))

    pick = random.Random(SEED)
    sizes = [(1920, 1080), (1366, 768), (1280, 720), (2560, 1440), (3840, 2160), (390, 844), (800, 600), (16, 16), (1, 1)]
    sizes += [(pick.randint(1, 4000), pick.randint(1, 3000)) for _ in range(600)]
    table = []
    for k, (w, h) in enumerate(sizes):
        lo, hi = ((1024, 13312), (24, 80), (256, 256), (100, 5000))[k % 4]
        table.append((w, h, lo, hi) + get_patch_grid_size(h, w, 16, 2, lo, hi))
    f.keep("canvases", torch.tensor(table, dtype=torch.int32))

    projector = model.multi_modal_projector
    weights = one_by_one(published(model.language_model, model.vision_model, projector))
    weights["vision_model.radio_model.model.patch_generator.video_embedder.weight"] = torch.zeros(2, 6)
    weights["sound_projection.norm.weight"] = weights["language_model.mtp.layers.0.norm.weight"] = torch.zeros(3)
    f.write({k: v.clone() for k, v in weights.items()}, {
        "architectures": ["NemotronH_Nano_Omni_Reasoning_V3"], "patch_size": 16, "downsample_ratio": 0.5,
        "ps_version": "v2", "projector_hidden_size": 36, "norm_mean": [0.5, 0.45, 0.4], "norm_std": [0.25, 0.26, 0.27],
        "img_context_token_id": IMAGE, "sound_config": {"hidden_size": 8}, "llm_config": llm_json(c, "omni"),
        "vision_config": {"hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 2.0,
                          "args": {"min_num_patches": low, "max_num_patches": high}}})


def make_latent(folder, rng):
    f, c = Files(folder), text_config("latent")
    lm = prepared(NemotronHForCausalLM(c).float(), rng)
    ids = torch.randint(0, VOCAB, (30,), generator=rng)
    f.keep("ids", ids.to(torch.int32))

    def run(more):
        return lm(input_ids=torch.cat([ids, torch.tensor(more, dtype=ids.dtype)])[None], use_cache=False).logits[0, -1]

    f.watch_language(lm)
    f.keep("logits", run([]))
    f.unwatch()
    f.keep("greedy", greedy(run))
    f.write({k.replace("model.", "backbone.", 1): v.contiguous().clone() for k, v in lm.state_dict().items()},
            {"architectures": ["NemotronHForCausalLM"]} | llm_json(c, "latent"))


@torch.no_grad()
def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "../golden/moe"))
    out = p.parse_args().out
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(SEED)
    make_omni(os.path.join(out, "omni"), rng)
    make_latent(os.path.join(out, "latent"), rng)


if __name__ == "__main__":
    main()
