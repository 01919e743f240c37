"""Write a model in the published Hugging Face layout, and read it back.

    python export.py --random --out model          initial weights (layout tests)
    python export.py --checkpoint run/last.pt --out model

The safetensors container is eight bytes of header length, a JSON header, and the raw tensors; it is
written here directly, in name order, with no other package.  Weights are rounded to bf16.
"""
import argparse
import json
import math
import os

import torch

import tokenizer
from model import Pocket, config_json, shape_of, MEAN, STD, SIDE

# Rendering of a conversation.  Image marks come before the text of their message; a marker
# already in the text stays where it is.
TEMPLATE = r"""{#- Conversation of the pocket model: system block, then one block per message. -#}
{%- set system = messages[0]['content'] if messages and messages[0]['role'] == 'system' else '' -%}
{{- '<s><SPECIAL_10>System\n' + system + '\n' -}}
{%- for message in messages if message['role'] != 'system' -%}
  {%- if message['role'] == 'assistant' -%}
    {{- '<SPECIAL_11>Assistant\n<think></think>' + message['content'] + '\n<SPECIAL_12>\n' -}}
  {%- else -%}
    {{- '<SPECIAL_11>User\n' -}}
    {%- if message['content'] is string -%}
      {{- message['content'] -}}
    {%- else -%}
      {%- set words = message['content'] | selectattr('type', 'equalto', 'text')
                                         | map(attribute='text') | join('') -%}
      {%- if '<image>' not in words -%}
        {%- for part in message['content'] if part['type'] == 'image' -%}
          {{- '<image>' + ('\n' if words else '') -}}
        {%- endfor -%}
      {%- endif -%}
      {{- words -}}
    {%- endif -%}
    {{- '\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<SPECIAL_11>Assistant\n<think></think>' -}}
{%- endif -%}
"""


def save_safetensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        size = tensors[name].numel() * 2
        header[name] = {"dtype": "BF16", "shape": list(tensors[name].shape),
                        "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(tensors):
            t = tensors[name].detach().to(torch.bfloat16).contiguous()
            f.write(t.view(torch.int16).numpy().tobytes())


def load_safetensors(path):
    """{name: fp32 tensor} of a file with BF16 tensors."""
    raw = open(path, "rb").read()
    n = int.from_bytes(raw[:8], "little")
    out = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name == "__metadata__":
            continue
        a, b = (8 + n + o for o in t["data_offsets"])
        flat = torch.frombuffer(bytearray(raw[a:b]), dtype=torch.int16).view(torch.bfloat16)
        out[name] = flat.float().view(t["shape"])
    return out


def load_model(directory):
    config = json.load(open(os.path.join(directory, "config.json")))
    model = Pocket(**shape_of(config))
    model.load_state_dict(load_safetensors(os.path.join(directory, "model.safetensors")))
    return model


def write(out, files, tensors):
    """The text files, the template and the weights."""
    os.makedirs(out, exist_ok=True)
    for name, value in files.items():
        with open(os.path.join(out, name), "w") as f:
            json.dump(value, f, indent=1, ensure_ascii=False)
            f.write("\n")
    with open(os.path.join(out, "chat_template.jinja"), "w") as f:
        f.write(TEMPLATE)
    temporary = os.path.join(out, "model.safetensors.part")
    save_safetensors(temporary, tensors)
    os.replace(temporary, os.path.join(out, "model.safetensors"))


def export(model, out):
    files = {
        "config.json": config_json(model.shape),
        "generation_config.json": {"do_sample": False, "max_new_tokens": 96, "bos_token_id": 1,
                                   "eos_token_id": [12, 2, 11]},
        "preprocessor_config.json": {"image_processor_type": "NemotronNanoVLV2ImageProcessor",
                                     "image_size": SIDE, "max_num_tiles": 1, "use_thumbnail": True,
                                     "norm_mean": list(MEAN), "norm_std": list(STD),
                                     "patch_size": 16, "downsample_ratio": 0.5},
        "tokenizer.json": tokenizer.tokenizer_json(),
        "tokenizer_config.json": tokenizer.tokenizer_config_json(),
        "special_tokens_map.json": tokenizer.special_tokens_map_json(),
    }
    write(out, files, model.state_dict())


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--checkpoint")
    p.add_argument("--random", action="store_true")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", default="model")
    a = p.parse_args()
    torch.manual_seed(a.seed)
    if a.random:
        model = Pocket()
        for p in model.parameters():        # few distinct values: the file compresses well
            step = p.detach().abs().max() / 8
            p.data = torch.round(p.data / step) * step if p.ndim == 2 else p.data
    else:
        saved = torch.load(a.checkpoint, map_location="cpu", weights_only=True)
        model = Pocket(**saved["shape"])
        model.load_state_dict(saved["model"])
        model.load_state_dict(saved.get("average", {}), strict=False)   # the better of the two
    export(model, a.out)
    n = sum(p.numel() for p in model.parameters())
    assert all(math.isfinite(p.detach().sum()) for p in model.parameters())
    print(f"{a.out}: {n} parameters, {2 * n / 1e6:.1f} MB in bf16")


if __name__ == "__main__":
    main()
