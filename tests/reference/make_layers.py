"""Writes every stage of three random models, computed by the implementations named in golden.py.

    python make_layers.py [chunks|faint|full ...]      into ../golden/NAME

chunks  odd sizes, many chunks: 700 tokens with an image of six tiles, in pieces of 1, 2, 597, 1, 1, 1 and 97.
        Time steps are far below time_step_min, which must have no effect; the second MLP squares
        numbers of several hundred.
faint   the same with inputs so small that every epsilon matters.
full    the sizes of the 12B model: one Mamba-2, one attention and one MLP layer, one block of the tower with
        position table and projector.  160 tokens (more than one chunk) in pieces of 150, 1 and 9; one tile.

Before a file is written, transformers' own scan and RadioModel's own blocks must agree with the stored values,
and in `chunks` the token-by-token recurrence as well.
"""
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "2")
import torch

import golden
from golden import VIT, Weights

MEAN, STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
SMALL = dict(
    seed=11, tile=64, skip=5, side=9, tiles=6, image_at=500, vocab=64, pieces=[1, 2, 597, 1, 1, 1, 97], inner=36,
    lm=dict(hybrid_override_pattern="M*-MM-*M-", hidden_size=48, intermediate_size=72, num_attention_heads=6,
            num_key_value_heads=2, head_dim=9, mamba_num_heads=6, mamba_head_dim=10, ssm_state_size=20, n_groups=3,
            conv_kernel=4, chunk_size=32),
    vit=dict(hidden_size=28, num_hidden_layers=3, num_attention_heads=2, intermediate_size=56),
    rows=[0, 1, 2, 3, 30, 31, 32, 33, 63, 64, 499, 500, 501, 511, 512, 513, 514, 515, 516, 517, 523, 524, 525, 599, 600,
          601, 602, 603, 604, 631, 632, 633, 650, 698, 699])
CASES = {
    "chunks": SMALL,
    "faint": SMALL | dict(seed=12, tiles=2, image_at=20, pieces=[40, 1, 30], rows=[0, 1, 19, 20, 27, 28, 40, 41, 70]),
    "full": dict(
        seed=13, tile=512, skip=16, side=128, tiles=1, image_at=None, vocab=1024, pieces=[150, 1, 9], inner=20480,
        lm=dict(hybrid_override_pattern="M*-", hidden_size=5120, intermediate_size=20480, num_attention_heads=40,
                num_key_value_heads=8, head_dim=128, mamba_num_heads=128, mamba_head_dim=80, ssm_state_size=128,
                n_groups=8, conv_kernel=4, chunk_size=128),
        vit=dict(hidden_size=1280, num_hidden_layers=1, num_attention_heads=16, intermediate_size=5120),
        rows=[0, 1, 127, 128, 150, 159]),
}


def add_language(w, c, vocab, faint):
    """faint: embeddings and every input of the gated norm have the size of the square root of its epsilon."""
    at, width = "language_model.backbone.", c["hidden_size"]
    inner = c["mamba_num_heads"] * c["mamba_head_dim"]
    channels = inner + 2 * c["n_groups"] * c["ssm_state_size"]
    q, kv = c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]

    def matrix(name, rows, cols, gain=1.2):
        w.add(name, (rows, cols), gain / cols ** 0.5)

    out = 0.004 if faint else 0.8
    w.add(at + "embeddings.weight", (vocab, width), 0.004 if faint else 1.0)
    for i, kind in enumerate(c["hybrid_override_pattern"]):
        m = f"{at}layers.{i}.mixer."
        w.add(f"{at}layers.{i}.norm.weight", (width,), 0.2, 1.0)
        if kind == "M":
            matrix(m + "in_proj.weight", inner + channels + c["mamba_num_heads"], width, 0.15 if faint else 1.2)
            w.add(m + "conv1d.weight", (channels, 1, c["conv_kernel"]), 0.5)
            w.add(m + "conv1d.bias", (channels,), 0.02 if faint else 0.2)
            w.add(m + "dt_bias", (c["mamba_num_heads"],), 2.5, -4.0)
            w.add(m + "A_log", (c["mamba_num_heads"],), 0.6, 0.5)
            w.add(m + "D", (c["mamba_num_heads"],), 0.3, 1.0)
            w.add(m + "norm.weight", (inner,), 0.2, 1.0)
            matrix(m + "out_proj.weight", width, inner, out)
        elif kind == "*":
            for n, rows in (("q", q), ("k", kv)):
                matrix(f"{m}{n}_proj.weight", rows, width, 1.5)
            matrix(m + "v_proj.weight", kv, width)
            matrix(m + "o_proj.weight", width, q, out)
        else:
            loud = 150.0 if i == 5 else 1.2
            matrix(m + "up_proj.weight", c["intermediate_size"], width, loud)
            matrix(m + "down_proj.weight", width, c["intermediate_size"], out / loud ** 2)
    w.add(at + "norm_f.weight", (width,), 0.2, 1.0)
    w.add("language_model.lm_head.weight", (vocab, width), 1.0 / width ** 0.5)


def add_vision(w, k, faint):
    v, small = k["vit"], 0.003 if faint else 1.0
    width, inner = v["hidden_size"], v["intermediate_size"]
    w.add(VIT + "patch_generator.embedder.weight", (width, 768), 0.6 * small / 768 ** 0.5)
    w.add(VIT + "patch_generator.pos_embed", (1, k["side"] ** 2, width), 0.8 * small)
    w.add(VIT + "patch_generator.cls_token.token", (k["skip"], width), small)
    for i in range(v["num_hidden_layers"]):
        b = f"{VIT}blocks.{i}."
        for n in ("norm1", "norm2"):
            w.add(b + n + ".weight", (width,), 0.2, 1.0)
            w.add(b + n + ".bias", (width,), 0.1)
        for n, rows, cols, gain in (("attn.qkv", 3 * width, width, 1.3), ("attn.proj", width, width, 0.8 * small),
                                    ("mlp.fc1", inner, width, 1.2), ("mlp.fc2", width, inner, 0.8 * small)):
            w.add(f"{b}{n}.weight", (rows, cols), gain / cols ** 0.5)
            w.add(f"{b}{n}.bias", (rows,), 0.2 * min(1.0, gain))
    if faint:
        for i in range(v["num_hidden_layers"]):
            for n in ("attn.proj", "mlp.fc2"):
                assert w.values[f"{VIT}blocks.{i}.{n}.bias"].abs().max() < 0.01
    w.add("mlp1.0.weight", (4 * width,), 0.2, 1.0)
    w.add("mlp1.1.weight", (k["inner"], 4 * width), 1.2 / (4 * width) ** 0.5)
    w.add("mlp1.3.weight", (k["lm"]["hidden_size"], k["inner"]), (0.004 if faint else 0.6) / k["inner"] ** 0.5)


def config_json(k):
    v = k["vit"]
    return {"architectures": ["NemotronH_Nano_VL_V2"], "model_type": "NemotronH_Nano_VL_V2", "force_image_size": k["tile"],
            "patch_size": 16, "downsample_ratio": 0.5, "ps_version": "v2", "image_tag_type": "internvl",
            "use_thumbnail": True, "vit_hidden_size": v["hidden_size"], "projector_hidden_size": k["inner"],
            "norm_mean": MEAN, "norm_std": STD, "img_context_token_id": k["vocab"] - 4,
            "llm_config": {"model_type": "nemotron_h", "vocab_size": k["vocab"], **k["lm"],
                           "num_hidden_layers": len(k["lm"]["hybrid_override_pattern"]), "use_conv_bias": True,
                           "layer_norm_epsilon": 1e-5, "mlp_hidden_act": "relu2", "mamba_hidden_act": "silu",
                           "time_step_min": 0.001, "time_step_max": 0.1, "time_step_floor": 1e-4,
                           "max_position_embeddings": 4096, "eos_token_id": 0},
            "vision_config": v}


def near(what, a, b, limit):
    d = ((a - b).norm() / b.norm()).item()
    print(f"  {what}: {d:.1e}")
    assert d < limit, what


def run_vision(k, w, out):
    pixels = golden.draw(k["seed"], "pixels", (k["tiles"], 3, k["tile"], k["tile"]), 0, 1 / golden.SPREAD)
    radio, blocks = golden.tower(w.values, k["vit"], k["tile"], k["skip"])
    first = []
    hook = radio.embeddings.register_forward_hook(lambda m, i, o: first.append(o))
    own = radio(pixels)
    hook.remove()
    rows = [r for r in range(0, k["tiles"] * (k["skip"] + (k["tile"] // 16) ** 2), 7)] if k["tile"] == 64 else \
        [0, 15, 16, 17, 48, 500, 1039]
    x = first[0]
    out.stage("block-1", x.flatten(0, 1), rows)
    for i, b in enumerate(blocks):
        x = b(x)
        out.stage(f"block{i}", x.flatten(0, 1), rows)
    near("timm's blocks against RadioModel's", x[:, k["skip"]:], own.features, 2e-6)
    y = golden.projector(w.values, k["vit"], k["lm"]["hidden_size"], k["inner"])(
        golden.shuffled(x[:, k["skip"]:], k["tile"] // 16)).flatten(0, 1)
    out.stage("rows", y, [r for r in (0, 1, 4, 5, 17, 255) if r < len(y)])
    return y


def run_language(k, w, rows, out):
    lm = golden.language(w.values, k["lm"] | {"vocab_size": k["vocab"], "layer_norm_epsilon": 1e-5})
    n = sum(k["pieces"])
    ids = torch.from_numpy((golden.mixed(k["seed"], "ids", 0, n) >> 40).astype("int64") % (k["vocab"] - 8))
    x = lm.get_input_embeddings()(ids)
    if k["image_at"] is not None:
        ids[k["image_at"]:k["image_at"] + len(rows)] = k["vocab"] - 4
        x[ids == k["vocab"] - 4] = rows
    golden.use(False)
    plain = lm(inputs_embeds=x[None], use_cache=False, logits_to_keep=0).logits[0]
    golden.use(True)
    full = lm(inputs_embeds=x[None], output_hidden_states=True, use_cache=False, logits_to_keep=0)
    assert golden.CALLS["scan"] and golden.CALLS["norm"]
    near("mamba-ssm's scan and norm against transformers'", full.logits[0], plain, 2e-5)
    if k is CASES["chunks"]:
        cache, got = None, []
        for t in range(n):
            step = lm(inputs_embeds=x[None, t:t + 1], past_key_values=cache, use_cache=True)
            cache = step.past_key_values
            got.append(step.logits[0, -1])
        assert golden.CALLS["step"] == (n - 1) * k["lm"]["hybrid_override_pattern"].count("M")
        near("mamba-ssm's recurrence against its scan", torch.stack(got), full.logits[0], 2e-5)
    out.keep("ids", ids)
    layers = []     # hooks, because the last of hidden_states comes after the final norm
    hooks = [l.register_forward_hook(lambda m, i, o: layers.append(o if torch.is_tensor(o) else o[0])) for l in lm.model.layers]
    lm(inputs_embeds=x[None], use_cache=False)
    for h in hooks:
        h.remove()
    for i, h in enumerate(layers):
        out.stage(f"layer{i}", h[0], k["rows"])
    ends = torch.tensor(k["pieces"]).cumsum(0) - 1
    out.keep("logits", full.logits[0, ends])
    margin = full.logits[0].topk(2).values
    print(f"  logits: deviation {full.logits.std():.2f}, gap to the second {(margin[:, 0] - margin[:, 1]).mean():.2f}")


@torch.no_grad()
def make(name):
    k, w = CASES[name], Weights(CASES[name]["seed"])
    print(name)
    add_language(w, k["lm"], k["vocab"], name == "faint")
    add_vision(w, k, name == "faint")
    out = golden.Fixture(name, "make_layers.py", k["seed"],
                         ["torch", "transformers", "timm", "mamba-ssm", "einops", "numpy"])
    rows = run_vision(k, w, out)
    run_language(k, w, rows, out)
    out.write(config_json(k), pieces=k["pieces"], tiles=k["tiles"], image_at=-1 if k["image_at"] is None else k["image_at"],
              weights=w.table)


if __name__ == "__main__":
    torch.set_num_threads(2)
    for case in sys.argv[1:] or CASES:
        make(case)
