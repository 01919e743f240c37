"""Writes a tiny model of the Qwen3.5 family with its tower, its tokenizer and a conversation with images.

    python make_qwen_whole.py        into ../golden/qwen/whole

The conversation is rendered by Jinja2 (qwen.jinja) and encoded by Hugging Face tokenizers; its images
(make_qwen_picture.py) are cut by transformers' processor, and Qwen3_5ForConditionalGeneration reads all of it in f32,
eager.  Stored: the ids, the logits at the start of the reply and a greedy continuation.  "later" is the prompt of the next
turn, which contains the reply without its reasoning.  Made with transformers 5.23.0, torch 2.13.0, tokenizers 0.23.3.
"""
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "2")
import numpy as np
import torch
from make_qwen_picture import Qwen2VLImageProcessor, draw as picture
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration
from transformers.utils.chat_template_utils import render_jinja_template

import drawn
from make_nfc import SPLIT
from make_qwen import spread_of
from make_qwen_tower import TEXT
from make_qwen_tower import spread_of as tower_spread

SEED, GREEDY, LEAST, MOST = 51, 48, 4096, 8192
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<think>", "</think>",
         "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
VOCAB = 288
PICTURES = [(90, 60, 0), (64, 96, 1), (200, 100, 2)]
TURNS = [[{"type": "text", "text": " Look: "}, {"type": "image"}, {"type": "text", "text": " and "}, {"type": "image"},
          {"type": "text", "text": "\nWhich is cafe\u0301? <|im_end|>\n"}],
         [{"type": "image"}, {"type": "text", "text": "And now?"}]]


def tokenizer():
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE({c: i for i, c in enumerate(letters)}, []))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(__import__("tokenizers").Regex(SPLIT), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    bare = Tokenizer.from_str(t.to_str())
    t.add_tokens([AddedToken(m, special=m[1] == "|", normalized=False) for m in MARKS])
    return t, bare


def encode(text, t, bare, rows):
    """Encodes a text in which U+E0F0 replaces the first character of a mark that is text."""
    ids, rows = [], iter(rows)
    while text:
        mark = min(((text.find(m), m) for m in MARKS if m in text), default=(len(text), ""))
        ids += bare.encode(text[:mark[0]].replace("\ue0f0", "<")).ids
        ids += [t.token_to_id(mark[1])] * (next(rows) if mark[1] == "<|image_pad|>" else 1) if mark[1] else []
        text = text[mark[0] + len(mark[1]):]
    return ids


def greedy(model, got, at):
    """Returns the most probable tokens after a prompt read as `got`, from position `at`, and the smallest gap to the second."""
    logits, cache, said, gap = got.logits[0, -1], got.past_key_values, [], 1e9
    for k in range(GREEDY):
        top = logits[:len(MARKS) + 256].topk(2)
        gap = min(gap, float(top.values[0] - top.values[1]))
        said.append(int(top.indices[0]))
        step = model.model.language_model(input_ids=torch.tensor([[said[-1]]]), position_ids=torch.full((3, 1, 1), at + k),
                                          past_key_values=cache, use_cache=True)
        logits = model.lm_head(step.last_hidden_state)[0, -1]
    return said, gap


@torch.no_grad()
def main():
    t, bare = tokenizer()
    with open(os.path.join(drawn.HERE, "..", "..", "src", "text", "templates", "qwen.jinja"), encoding="utf-8") as f:
        template = f.read()
    vision = dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, num_position_embeddings=64, out_hidden_size=64,
                  patch_size=16, temporal_patch_size=2, spatial_merge_size=2, in_channels=3, hidden_act="gelu_pytorch_tanh")
    text = TEXT | {"vocab_size": VOCAB, "tie_word_embeddings": True}
    ids = {k: t.token_to_id(m) for k, m in (("image_token_id", "<|image_pad|>"), ("vision_start_token_id", "<|vision_start|>"),
                                            ("vision_end_token_id", "<|vision_end|>"))}
    config = Qwen3_5Config(text_config=text, vision_config=vision, **ids, tie_word_embeddings=True, attn_implementation="eager")
    model = Qwen3_5ForConditionalGeneration(config)
    w = drawn.Weights(SEED)
    for name, v in sorted(model.state_dict().items()):
        if name != "lm_head.weight":
            w.add(name, tuple(v.shape), *(tower_spread(name, v.shape) if ".visual." in name else spread_of(name)))
    model.load_state_dict(w.values, strict=False)
    model.tie_weights()
    model.float().eval()
    p = Qwen2VLImageProcessor(patch_size=16, temporal_patch_size=2, merge_size=2, image_mean=[0.5] * 3, image_std=[0.5] * 3,
                              size={"shortest_edge": LEAST, "longest_edge": MOST})
    seen = [p(images=[torch.from_numpy(np.ascontiguousarray(picture(*x))).permute(2, 0, 1)], return_tensors="pt") for x in PICTURES]
    grids = torch.cat([s["image_grid_thw"] for s in seen])
    rows = (grids.prod(1) // 4).tolist()
    out = drawn.Fixture("qwen/whole", "make_qwen_whole.py", SEED, ["torch", "transformers", "tokenizers"])
    hidden = json.loads(json.dumps(TURNS).replace("<|im_end|>", "\ue0f0|im_end|>"))
    ask = [{"role": "system", "content": "Be brief.\n"}, {"role": "user", "content": hidden[0]}]

    def prompt(messages, think):
        text, _ = render_jinja_template([messages], chat_template=template, add_generation_prompt=True, enable_thinking=think)
        return encode(text[0], t, bare, rows)

    first = prompt(ask, False)
    reply = "It is the left one."
    later = prompt(ask + [{"role": "assistant", "content": "<think>\nHm.\n</think>\n\n" + reply}, {"role": "user", "content": hidden[1]}], True)
    for name, ids, n in (("first", first, 2), ("later", later, 3)):
        pixels = torch.cat([s["pixel_values"] for s in seen[:n]])
        x = torch.tensor([ids])
        kinds = (x == config.image_token_id).int()
        got = model(input_ids=x, pixel_values=pixels, image_grid_thw=grids[:n], mm_token_type_ids=kinds, use_cache=True)
        at, _ = model.model.get_rope_index(x, kinds, image_grid_thw=grids[:n])
        out.keep(name + ".ids", torch.tensor(ids))
        out.keep(name + ".logits", got.logits[0, -1])
        said, gap = greedy(model, got, int(at.max()) + 1)
        out.keep(name + ".said", torch.tensor(said))
        print(name, len(ids), "largest", float(got.logits.abs().max()), "gap", gap, said[:12])
    full = {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", **{k: t.token_to_id(m) for k, m in (
        ("image_token_id", "<|image_pad|>"), ("vision_start_token_id", "<|vision_start|>"), ("vision_end_token_id", "<|vision_end|>"))},
        "tie_word_embeddings": True, "eos_token_id": 256, "text_config": text | {"model_type": "qwen3_5_text"},
        "vision_config": vision | {"model_type": "qwen3_5", "deepstack_visual_indexes": []}}
    out.write(full, weights=w.table, pictures=[list(x) for x in PICTURES], reply=reply, rows=rows)
    with open(os.path.join(out.dir, "tokenizer.json"), "w", encoding="utf-8") as f:
        f.write(t.to_str())
    with open(os.path.join(out.dir, "preprocessor_config.json"), "w") as f:
        json.dump({"size": {"shortest_edge": LEAST, "longest_edge": MOST}, "patch_size": 16, "temporal_patch_size": 2, "merge_size": 2,
                   "image_mean": [0.5] * 3, "image_std": [0.5] * 3}, f)


if __name__ == "__main__":
    main()
