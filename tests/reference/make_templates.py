"""Writes conversations in the layouts of published chat templates, as rendered and encoded by transformers.

    python make_templates.py OUT [--cases 400] [--seed 1] [--families qwen3 ...]     all of it, with ids, to OUT
    python make_templates.py --sample 40                                             to ../golden/templates

The templates are those of the package trl, which contains the published ones unchanged; tests/scripts/templates.sh
copies them to build/templates (--templates FOLDER reads them from another directory).  None of them is part of this tree.

A family is a file of JSON lines.  Each is a conversation (conversations.py): "messages", "options" (further variables of the
template), "add_generation_prompt", "tools" if there are any, then
  "text", "ids"                         apply_chat_template's text, and its ids by tokenizer.json
  "text", "ids_count", "ids_sha256"     in a sample: the hash of the ids as 32 bits each, the lowest byte first
  "error": true, "message"              if the template refuses the conversation
Images have one <|image_pad|> each.  apply_chat_template drops a message's keys that are null, and passes tools=None for none.

tokenizer.json is a byte-level BPE in Qwen's form: NFC, its split pattern, its added tokens with their flags and order, and a
small vocabulary, trained on renderings of another seed (--tokenizer recreates it).  index.json has versions and the SHA-256
of each template.  Made with transformers 5.24.0, tokenizers 0.23.3, Jinja2 3.1.6 and trl 1.16.0.
"""
import argparse
import hashlib
import json
import os
import struct
from importlib import metadata, util

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from conversations import FAMILIES, draw

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "golden", "templates")
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
         r"\s*[\r\n]+|\s+(?!\S)|\s+")
VOCAB, CORPUS, MOST_REFUSED = 1536, 60, 0.05
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
           "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
PLAIN = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>",
         "<tool_response>", "</tool_response>", "<think>", "</think>"]


def train(texts):
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=VOCAB, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                                     show_progress=False))
    t.add_tokens([AddedToken(m, special=m in SPECIAL, normalized=False) for m in SPECIAL + PLAIN])
    return t


def spells_token(value, reply=False):
    """Returns whether a text within a value contains the spelling of an added token."""
    if isinstance(value, str):
        return any(m in value for m in SPECIAL + PLAIN if not (reply and "think>" in m))
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    reply = reply or isinstance(value, dict) and value.get("role") == "assistant"
    return any(spells_token(v, reply) for v in values) or isinstance(value, dict) and any(spells_token(k) for k in value)


def render(case, family, templates):
    bare = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), chat_template=templates[family])
    return bare.apply_chat_template(case["messages"], tools=case.get("tools"), tokenize=False,
                                    add_generation_prompt=case["add_generation_prompt"], **case["options"])


def cases(seed, family, n, small, templates):
    """Yields n conversations with their text; few of them are refused."""
    refused = kept = number = 0
    while kept < n:
        case = draw(seed, family, number, small)
        number += 1
        assert not spells_token([case["messages"], case.get("tools")]), case
        try:
            case["text"] = render(case, family, templates)
        except Exception as e:  # including Python's own, on which templates rely
            if refused + 1 > MOST_REFUSED * n:
                continue
            refused += 1
            case.update(error=True, message=f"{type(e).__name__}: {e}")
        kept += 1
        yield case


def encode(case, tokenizer, hashed):
    if "text" not in case:
        return case
    ids = tokenizer.encode(case["text"], add_special_tokens=False).ids
    if not hashed:
        return {**case, "ids": ids}
    return {**case, "ids_count": len(ids), "ids_sha256": hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()}


def parse():
    args = argparse.ArgumentParser()
    args.add_argument("out", nargs="?", default=GOLDEN)
    args.add_argument("--cases", type=int, default=400)
    args.add_argument("--sample", type=int, default=0)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--families", nargs="*", default=FAMILIES)
    args.add_argument("--templates")
    args.add_argument("--tokenizer", action="store_true")
    args = args.parse_args()
    if args.out == GOLDEN and not args.sample:
        raise SystemExit("make_templates.py: the whole set needs a folder to go to; --sample goes into the tree")
    if not args.templates:
        args.templates = os.path.join(os.path.dirname(util.find_spec("trl").origin), "chat_templates")
    return args


def main():
    args, templates = parse(), {}
    for f in args.families:
        with open(os.path.join(args.templates, f + ".jinja"), encoding="utf-8", newline="") as file:
            templates[f] = file.read()
    path = os.path.join(GOLDEN, "tokenizer.json")
    if args.tokenizer:
        train([c.get("text", "") for f in args.families for c in cases(args.seed + 1, f, CORPUS, True, templates)]).save(path, pretty=False)
    tokenizer, index = Tokenizer.from_file(path), {}
    os.makedirs(args.out, exist_ok=True)
    for f in args.families:
        drawn = [encode(c, tokenizer, args.sample) for c in cases(args.seed, f, args.sample or args.cases, bool(args.sample), templates)]
        with open(os.path.join(args.out, f + ".jsonl"), "w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(c, ensure_ascii=False, separators=(",", ":")) + "\n" for c in drawn)
        index[f] = {"sha256": hashlib.sha256(templates[f].encode()).hexdigest(), "cases": len(drawn), "refused": sum("error" in c for c in drawn)}
        print(f, index[f]["cases"], "conversations,", index[f]["refused"], "refused", flush=True)
    root = {"generator": "make_templates.py", "seed": args.seed,
            **{p: metadata.version(p) for p in ["transformers", "tokenizers", "jinja2", "trl"]}, "families": index}
    with open(os.path.join(args.out, "index.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(root, indent=1) + "\n")


if __name__ == "__main__":
    main()
