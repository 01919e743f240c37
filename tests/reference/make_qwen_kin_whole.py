"""Writes tiny models of Qwen3-VL and Qwen2.5-VL with tower, tokenizer and a conversation with images.

    python make_qwen_kin_whole.py        into ../golden/qwen/whole_vl3 and whole_vl25

Like make_qwen_whole.py, with qwen_json.jinja, Qwen2's pre-tokenizer and each family's processor; "later" is
the prompt of the next turn, with one more image.  Made with transformers 5.23.0, torch 2.13.0, tokenizers 0.23.3.
"""
import json
import os

import numpy as np
import torch
from make_qwen_picture import CLIP, HALF, Qwen2VLImageProcessor  # before transformers' models
from make_qwen_picture import draw as picture
from make_qwen_kin import CASES as LANGUAGE
from make_qwen_kin import TOWER3, TOWER25, build, spread_of
from make_qwen_kin_tower import spread_of as tower_spread
import make_qwen_kin
from make_qwen_whole import MARKS, TURNS, VOCAB, encode, greedy
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers.utils.chat_template_utils import render_jinja_template

import drawn

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
REPLY = "It is the left one."
CASES = {"whole_vl3": dict(of="vl3", seed=81, patch=16, normal=HALF, least=4096, most=8192, pictures=[(90, 60, 0), (64, 96, 1), (200, 100, 2)],
                           vision=TOWER3, greets=False),
         "whole_vl25": dict(of="vl25", seed=82, patch=14, normal=CLIP, least=784, most=28 * 28 * 40, pictures=[(90, 60, 0), (200, 140, 1), (280, 100, 2)],
                            vision=TOWER25, greets=True)}


def tokenizer():
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE({c: i for i, c in enumerate(letters)}, []))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    bare = Tokenizer.from_str(t.to_str())
    t.add_tokens([AddedToken(m, special=m[1] == "|", normalized=False) for m in MARKS])
    return t, bare


def spread(name, shape):
    if ".visual." not in name:
        return spread_of(name, shape)
    part = name.split("visual.")[1]
    if "deepstack" in name and "norm" not in name:
        return 0.5 / shape[-1] ** 0.5, 0.0
    return tower_spread(part, shape)


@torch.no_grad()
def make(name):
    case = CASES[name]
    t, bare = tokenizer()
    ids = {k: t.token_to_id(m) for k, m in (("image_token_id", "<|image_pad|>"), ("video_token_id", "<|endoftext|>"),
                                            ("vision_start_token_id", "<|vision_start|>"), ("vision_end_token_id", "<|vision_end|>"))}
    make_qwen_kin.IDS.update(ids)
    of = LANGUAGE[case["of"]] | {"seed": case["seed"], "vision": case["vision"]}
    of["text"] = of["text"] | {"vocab_size": VOCAB}
    make_qwen_kin.fill.__defaults__ = (spread,)
    model, w = build(of)
    patch = case["patch"]
    p = Qwen2VLImageProcessor(patch_size=patch, temporal_patch_size=2, merge_size=2, image_mean=case["normal"][0], image_std=case["normal"][1],
                              size={"shortest_edge": case["least"], "longest_edge": case["most"]})
    seen = [p(images=[torch.from_numpy(np.ascontiguousarray(picture(*x))).permute(2, 0, 1)], return_tensors="pt") for x in case["pictures"]]
    grids = torch.cat([s["image_grid_thw"] for s in seen])
    rows = (grids.prod(1) // 4).tolist()
    out = drawn.Fixture(f"qwen/{name}", "make_qwen_kin_whole.py", case["seed"], ["torch", "transformers", "tokenizers"])
    hidden = json.loads(json.dumps(TURNS).replace("<|im_end|>", "\ue0f0|im_end|>"))
    with open(os.path.join(drawn.HERE, "..", "..", "src", "text", "templates", "qwen_json.jinja"), encoding="utf-8") as f:
        template = f.read()

    def prompt(messages):
        text, _ = render_jinja_template([messages], chat_template=template, add_generation_prompt=True, greets=case["greets"])
        return encode(text[0], t, bare, rows)

    ask = [{"role": "user", "content": hidden[0]}]
    ask = ask if case["greets"] else [{"role": "system", "content": "Be brief.\n"}] + ask
    later = prompt(ask + [{"role": "assistant", "content": REPLY}, {"role": "user", "content": hidden[1]}])
    for part, tokens, n in (("first", prompt(ask), 2), ("later", later, 3)):
        x = torch.tensor([tokens])
        kinds = (x == ids["image_token_id"]).int()
        got = model(input_ids=x, pixel_values=torch.cat([s["pixel_values"] for s in seen[:n]]), image_grid_thw=grids[:n],
                    mm_token_type_ids=kinds, use_cache=True)
        at, _ = model.model.get_rope_index(x, mm_token_type_ids=kinds, image_grid_thw=grids[:n])
        out.keep(part + ".ids", x[0])
        out.keep(part + ".logits", got.logits[0, -1])
        said, gap = greedy(model, got, int(at.max()) + 1)
        out.keep(part + ".said", torch.tensor(said))
        print(name, part, len(tokens), rows, "largest", float(got.logits.abs().max()), "gap", gap, said[:12])
    full = {"architectures": [of["model"].__name__], "model_type": of["type"], **ids, "tie_word_embeddings": of["tied"], "eos_token_id": 256,
            "text_config": of["text"], "vision_config": of["vision"]}
    out.write(full, weights=w.table, pictures=[list(x) for x in case["pictures"]], reply=REPLY, rows=rows)
    with open(os.path.join(out.dir, "tokenizer.json"), "w", encoding="utf-8") as f:
        f.write(t.to_str())
    with open(os.path.join(out.dir, "preprocessor_config.json"), "w") as f:
        size = {"min_pixels": case["least"], "max_pixels": case["most"]} if case["greets"] else {"size": {"shortest_edge": case["least"],
                                                                                                          "longest_edge": case["most"]}}
        json.dump(size | {"patch_size": patch, "temporal_patch_size": 2, "merge_size": 2, "image_mean": case["normal"][0],
                          "image_std": case["normal"][1]}, f)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each in CASES:
        make(each)
