"""Writes models of the golden data as GGUF files with the gguf package, and compares llama.cpp's replies.

    python make_gguf.py            hashes of the tensors to ../golden/gguf/reference.json
    python make_gguf.py FOLDER     also keeps the files there

The weights are those of ../golden/qwen/{dense,moe,whole,text2,text2tied,text3}, generated again.  Names come from the
package's own table.  The conversions of llama.cpp's converter are repeated here: 1 is added to all norms except
that of the delta rule, A_log becomes -exp(A_log), value heads change from grouped to tiled order, experts and the frames of
a patch become separate tensors; text models are not changed.  llama.cpp (the wheel xllamacpp) then reads each file and
continues prompts of the golden data: its tokens must begin like those of transformers.  The matrices are F32 for this.
llama.cpp sums in another order, so replies may differ later, and they do at an end token, because the request forbids it
(ignore_eos); the number of equal tokens is printed and stored.  The hashes are of the files in BF16.  Made with gguf
0.19.0, xllamacpp 2026.10.11549 and numpy 2.4.6.
"""
import hashlib
import json
import os
import re
import sys
import tempfile

import gguf
import numpy as np

import drawn

LM, VISUAL = "model.language_model.", "model.visual."
SAME = {"num_hidden_layers": "block_count", "hidden_size": "embedding_length", "intermediate_size": "feed_forward_length",
        "max_position_embeddings": "context_length", "num_attention_heads": "attention.head_count",
        "num_key_value_heads": "attention.head_count_kv", "linear_conv_kernel_dim": "ssm.conv_kernel",
        "linear_key_head_dim": "ssm.state_size", "linear_num_key_heads": "ssm.group_count",
        "linear_num_value_heads": "ssm.time_step_rank", "num_experts": "expert_count",
        "num_experts_per_tok": "expert_used_count", "moe_intermediate_size": "expert_feed_forward_length",
        "shared_expert_intermediate_size": "expert_shared_feed_forward_length"}
TOWER = {"depth": "block_count", "hidden_size": "embedding_length", "intermediate_size": "feed_forward_length",
         "num_heads": "attention.head_count", "patch_size": "patch_size", "out_hidden_size": "projection_dim",
         "spatial_merge_size": "spatial_merge_size"}
PIECES = {"merger.norm": "v.post_ln", "merger.linear_fc1": "mm.0", "merger.linear_fc2": "mm.2", "patch_embed.proj": "v.patch_embd"}


def tiled(x, heads, keys, axis):
    """Reorders an axis of heads from grouped by key head to grouped by position within the group."""
    x = np.moveaxis(x, axis, 0)
    x = x.reshape(keys, heads // keys, -1, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)
    return np.moveaxis(x, 0, axis)


TEXT = {"text2": "qwen2", "text2tied": "qwen2", "text3": "qwen3"}  # models without a tower: only names differ


def changed(name, x, c):
    """Returns pairs (rest of a name, values) in the form of a GGUF file."""
    if "linear_num_key_heads" not in c:
        return [(name, x)]
    keys, heads = c["linear_num_key_heads"], c["linear_num_value_heads"]
    before = 2 * keys * c["linear_key_head_dim"]
    if name.endswith("norm.weight") and "linear_attn.norm" not in name and not name.startswith("visual."):
        x = x + np.float32(1)
    if name.endswith("A_log"):
        x = -np.exp(x)
    if "in_proj_qkv" in name or "conv1d" in name:
        x = x.squeeze()
        x = np.concatenate([x[:before], tiled(x[before:], heads, keys, 0)])
    elif re.search(r"in_proj_[zab]\.|A_log|dt_bias", name):
        x = tiled(x, heads, keys, 0)
    elif "linear_attn.out_proj" in name:
        x = tiled(x, heads, keys, 1)
    if name.endswith("experts.gate_up_proj"):
        half = x.shape[1] // 2
        return [(name.replace("gate_up", "gate") + ".weight", x[:, :half]), (name.replace("gate_up", "up") + ".weight", x[:, half:])]
    if name.endswith("patch_embed.proj.weight"):
        return [(name, x[:, :, 0]), (name + ".1", x[:, :, 1])]
    return [(name + ".weight" if name.endswith("experts.down_proj") else name, x)]


def gguf_name(table, name):
    rest = name.removeprefix("visual.")
    for piece, front in PIECES.items():
        if name.startswith("visual.") and rest.startswith(piece + "."):
            return front + rest[len(piece):]
    name = name.replace(".dt_bias", ".dt_proj.bias")
    return table.get_name(name, try_suffixes=(".weight", ".bias"))


def writer(path, arch, tensors, table, kept, full):
    w = gguf.GGUFWriter(path, arch)
    for name, x in tensors:
        plain = full or x.ndim == 1 or re.search(r"conv1d|mlp\.gate\.|shared_expert_gate|pos_embed|patch_embed", name)
        own, x = gguf_name(table, name), np.ascontiguousarray(x, np.float32)
        assert own, name
        data = x if plain else gguf.quants.quantize(x, gguf.GGMLQuantizationType.BF16)
        w.add_tensor(own, data, raw_dtype=None if plain else gguf.GGMLQuantizationType.BF16)
        entry = {"name": own, "shape": list(x.shape), "type": "F32" if plain else "BF16"}
        if own.endswith("ssm_a"):  # exp may differ in the last bit
            entry["values"] = [float(v) for v in x]
        else:
            entry["sha256"] = hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()
        kept.append(entry)
    return w


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def words(folder, vocab):
    """Returns tokens and their types: those of a tokenizer.json without merges, else two letters each."""
    path = os.path.join(folder, "tokenizer.json")
    plain = {chr(97 + i // 26) + chr(97 + i % 26): i for i in range(vocab)}
    added = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            root = json.load(f)
        plain, added = root["model"]["vocab"], {a["id"]: a for a in root["added_tokens"]}
    list_, types = [f"[PAD{i}]" for i in range(vocab)], [gguf.TokenType.UNUSED] * vocab
    for c, i in plain.items():
        list_[i], types[i] = c, gguf.TokenType.NORMAL
    for i, a in added.items():
        list_[i], types[i] = a["content"], gguf.TokenType.CONTROL if a["special"] else gguf.TokenType.USER_DEFINED
    return list_, types


def language(w, arch, c, folder):
    for key, own in SAME.items():
        if key in c:
            w.add_uint32(f"{arch}.{own}", c[key])
    rope = c.get("rope_parameters", c)
    if "head_dim" in c:
        w.add_key_length(c["head_dim"])
        w.add_value_length(c["head_dim"])
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    w.add_rope_freq_base(rope["rope_theta"])
    if arch not in TEXT.values():
        w.add_uint32(f"{arch}.ssm.inner_size", c["linear_num_value_heads"] * c["linear_value_head_dim"])
        w.add_uint32(f"{arch}.full_attention_interval", 4)
        w.add_rope_dimension_count(int(c["head_dim"] * rope["partial_rotary_factor"]))
        w.add_rope_dimension_sections([*rope["mrope_section"], 0])
    list_, types = words(folder, c["vocab_size"])
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2" if arch in TEXT.values() else "qwen35")
    w.add_token_list(list_)
    w.add_token_types(types)
    w.add_token_merges(["! \""])  # llama.cpp requires one
    w.add_eos_token_id(256 if c["vocab_size"] > 256 else 159)


def build(case, folder, full):
    source = os.path.join(drawn.HERE, "..", "golden", "qwen", case)
    with open(os.path.join(source, "reference.json")) as f:
        root = json.load(f)
    with open(os.path.join(source, "config.json")) as f:
        config = json.load(f)
    c = config.get("text_config", config)
    arch = TEXT.get(case) or ("qwen35moe" if "num_experts" in c else "qwen35")
    text, eyes = [], []
    for t in root["weights"]:
        x = drawn.draw(root["seed"], t["name"], t["shape"], t["offset"], t["unit"]).numpy()
        name = t["name"].replace(LM, "model.").replace(VISUAL, "visual.")
        (eyes if name.startswith("visual.") else text).extend(changed(name, x, c))
    kept = []
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], c["num_hidden_layers"])
    path = os.path.join(folder, f"{case}.gguf")
    w = writer(path, arch, text, table, kept, full)
    language(w, arch, c, source)
    finish(w)
    if eyes:
        v = config["vision_config"]
        w = writer(os.path.join(folder, f"mmproj-{case}.gguf"), "clip", eyes, gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, v["depth"]), kept, full)
        for key, own in TOWER.items():
            w.add_uint32(f"clip.vision.{own}", v[key])
        w.add_uint32("clip.vision.image_size", int(v["num_position_embeddings"] ** 0.5) * v["patch_size"])
        w.add_clip_has_vision_encoder(True)
        w.add_clip_projector_type("qwen3vl_merger")
        w.add_vision_use_gelu(True)
        w.add_vision_attention_layernorm_eps(1e-6)
        w.add_vision_image_mean([0.5] * 3)
        w.add_vision_image_std([0.5] * 3)
        finish(w)
    return path, root, source, kept


def array(root, source, name):
    a = next((x for x in root["arrays"] if x["name"] == name), None)
    if not a:
        return None
    with open(os.path.join(source, "reference.bin"), "rb") as f:
        f.seek(a["offset"])
        return np.frombuffer(f.read(4 * int(np.prod(a["shape"]))), np.int32).tolist()


def ask(server, request):
    """Returns the ids of a greedy continuation."""
    got = server.handle_completions(request | {"temperature": 0, "top_k": 1, "ignore_eos": True, "n_probs": 1, "cache_prompt": False})
    return [t["id"] for t in got["choices"][0]["logprobs"]["content"]]


def follow(path, root, source):
    """Returns how many tokens llama.cpp continues like transformers, for prompts without images, and the total."""
    import xllamacpp
    p = xllamacpp.CommonParams()
    p.model.path, p.n_ctx, p.n_gpu_layers, p.warmup, p.n_parallel = path, 1024, 0, False, 1
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    p.cache_type_k = p.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    p.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    eyes = os.path.join(os.path.dirname(path), "mmproj-" + os.path.basename(path))
    if os.path.exists(eyes):
        p.mmproj.path, p.mmproj_use_gpu = eyes, False
    server, seen = xllamacpp.Server(p), {}
    if p.mmproj.path:  # both files must load; images are not compared
        got = server.handle_completions({"prompt": "abc", "n_predict": 4})
        assert "choices" in got, got
        return {"reads both files": True}
    for i in (0, 5, 10, 15):
        ids, want = array(root, source, f"greedy{i}.ids"), array(root, source, f"greedy{i}")
        if ids and not array(root, source, f"greedy{i}.grids"):
            got = ask(server, {"prompt": ids, "n_predict": 64})
            seen[f"greedy{i}"] = [next((k for k, (a, b) in enumerate(zip(got, want)) if a != b), len(got)), len(got)]
    return seen


def main(folder):
    out, agree = {}, {}
    for case in ("dense", "moe", "whole", *TEXT):
        out[case] = build(case, folder, False)[3]
        path, root, source, _ = build(case, folder, True)
        agree[case] = follow(path, root, source)
        print(case, len(out[case]), "tensors; agreeing with transformers, of:", agree[case], flush=True)
    fixture = drawn.Fixture("gguf", "make_gguf.py", 0, ["gguf", "numpy", "xllamacpp"])
    fixture.write(llama_cpp=agree, **out)
    os.remove(os.path.join(fixture.dir, "reference.bin"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        os.makedirs(sys.argv[1], exist_ok=True)
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as place:
            main(place)
