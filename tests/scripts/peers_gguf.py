#!/usr/bin/env python3
"""Writes the model of peers_model.py for llama.cpp, with the same numbers: peers_gguf.py FOLDER.

FOLDER/text.gguf is the language model, FOLDER/eyes.gguf the vision encoder with its projector. llama.cpp interleaves
the two halves of a head's rows, while the checkpoint stores them in sequence; it needs biases and convolutions as
f32; and, like Llava 1.5, it omits the encoder's last layer, so the layer count includes one that is never computed.
"""
import json
import sys

import numpy as np
from gguf import GGUFWriter, TokenType
from safetensors.numpy import load_file

BLOCK = {"layer_norm1": "ln1", "layer_norm2": "ln2", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.out_proj": "attn_out", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"}
LAYER = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def add(writer, name, values):
    writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))


def by_turns(rows, heads):
    """Interleaves the first and second half of each head's rows."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def find(weights, *ends):
    """Returns the tensor whose name ends with this; the beginnings differ between versions."""
    for end in ends:
        for name, values in weights.items():
            if name.endswith(end):
                return values
    raise KeyError(ends)


def vocabulary(writer, folder):
    with open(f"{folder}/tokenizer.json", encoding="utf-8") as f:
        file = json.load(f)
    marks = {t["id"]: t["content"] for t in file["added_tokens"]}
    words = {i: w for w, i in file["model"]["vocab"].items()} | marks
    merges = [m if isinstance(m, str) else " ".join(m) for m in file["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([words[i] for i in range(len(words))])
    writer.add_token_types([TokenType.CONTROL if i in marks else TokenType.NORMAL for i in range(len(words))])
    writer.add_token_merges(merges)
    id_of = {w: i for i, w in words.items()}
    writer.add_bos_token_id(id_of["<|im_start|>"])
    writer.add_eos_token_id(id_of["<|im_end|>"])
    writer.add_add_bos_token(False)
    with open(f"{folder}/chat_template.jinja", encoding="utf-8") as f:
        writer.add_chat_template(f.read())
    return len(words)


def write_text(folder, config, weights):
    c, writer = config["text_config"], GGUFWriter(f"{folder}/text.gguf", "llama")
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_context_length(c["max_position_embeddings"])
    writer.add_embedding_length(c["hidden_size"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(c["num_attention_heads"])
    writer.add_head_count_kv(c["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_rope_freq_base((c.get("rope_parameters") or c)["rope_theta"])
    writer.add_rope_dimension_count(c["hidden_size"] // c["num_attention_heads"])
    writer.add_file_type(0)
    writer.add_vocab_size(vocabulary(writer, folder))
    add(writer, "token_embd.weight", find(weights, "embed_tokens.weight"))
    add(writer, "output_norm.weight", find(weights, "language_model.model.norm.weight", "language_model.norm.weight"))
    add(writer, "output.weight", find(weights, "lm_head.weight"))
    for i in range(c["num_hidden_layers"]):
        for theirs, peer in LAYER.items():
            rows = find(weights, f"language_model.model.layers.{i}.{theirs}.weight", f"language_model.layers.{i}.{theirs}.weight")
            heads = {"attn_q": c["num_attention_heads"], "attn_k": c["num_key_value_heads"]}.get(peer)
            add(writer, f"blk.{i}.{peer}.weight", by_turns(rows, heads) if heads else rows)
    finish(writer)


def write_eyes(folder, config, weights):
    c, writer = config["vision_config"], GGUFWriter(f"{folder}/eyes.gguf", "clip")
    with open(f"{folder}/processor_config.json", encoding="utf-8") as f:
        pictures = json.load(f)["image_processor"]
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_bool("clip.use_gelu", True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_file_type(0)
    for key, value in (("image_size", c["image_size"]), ("patch_size", c["patch_size"]),
                       ("embedding_length", c["hidden_size"]), ("feed_forward_length", c["intermediate_size"]),
                       ("projection_dim", config["text_config"]["hidden_size"]),
                       ("block_count", c["num_hidden_layers"] + 1), ("attention.head_count", c["num_attention_heads"])):
        writer.add_uint32(f"clip.vision.{key}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", c["layer_norm_eps"])
    writer.add_array("clip.vision.image_mean", pictures["image_mean"])
    writer.add_array("clip.vision.image_std", pictures["image_std"])
    add(writer, "v.patch_embd.weight", find(weights, "embeddings.patch_embedding.weight"))
    add(writer, "v.patch_embd.bias", find(weights, "embeddings.patch_embedding.bias"))
    add(writer, "v.position_embd.weight", find(weights, "embeddings.position_embedding.weight"))
    for kind in ("weight", "bias"):
        add(writer, f"mm.0.{kind}", find(weights, f"multi_modal_projector.linear_1.{kind}"))
        add(writer, f"mm.2.{kind}", find(weights, f"multi_modal_projector.linear_2.{kind}"))
        for i in range(c["num_hidden_layers"] + 1):
            for theirs, peer in BLOCK.items():
                last = min(i, c["num_hidden_layers"] - 1)
                add(writer, f"v.blk.{i}.{peer}.{kind}", find(weights, f"encoder.layers.{last}.{theirs}.{kind}"))
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(folder):
    with open(f"{folder}/config.json", encoding="utf-8") as f:
        config = json.load(f)
    weights = load_file(f"{folder}/model.safetensors")
    write_text(folder, config, weights)
    write_eyes(folder, config, weights)


main(sys.argv[1])
