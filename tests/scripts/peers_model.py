#!/usr/bin/env python3
"""Writes a tiny vision model with random weights, for servers that others wrote: peers_model.py FOLDER.

Its words are bytes, so that any text has tokens; what it says is noise, which is the point: nothing that it
says may stop a client. A Llava of two layers, with a chat template in the style of ChatML.
"""
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (CLIPImageProcessor, CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration,
                          LlavaProcessor, PreTrainedTokenizerFast)

SIDE, PATCH = 56, 14
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for p in m['content'] %}"
    "{% if p['type'] == 'text' %}{{ p['text'] }}{% else %}<image>{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def tokenizer():
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|im_end|>", pad_token="<|pad|>", bos_token="<|im_start|>")
    fast.add_special_tokens({"additional_special_tokens": ["<image>"]})
    fast.chat_template = TEMPLATE
    return fast


def main(folder):
    torch.manual_seed(1)
    words = tokenizer()
    image = words.convert_tokens_to_ids("<image>")
    vision = CLIPVisionConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                              image_size=SIDE, patch_size=PATCH, projection_dim=32)
    text = LlamaConfig(vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                       num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=65536,
                       eos_token_id=words.eos_token_id, pad_token_id=words.pad_token_id, bos_token_id=words.bos_token_id)
    model = LlavaForConditionalGeneration(LlavaConfig(vision_config=vision, text_config=text, image_token_index=image,
                                                      vision_feature_layer=-1))
    model.generation_config.eos_token_id = words.eos_token_id
    model.generation_config.pad_token_id = words.pad_token_id
    model.save_pretrained(folder)
    pictures = CLIPImageProcessor(size={"height": SIDE, "width": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    LlavaProcessor(image_processor=pictures, tokenizer=words, patch_size=PATCH, num_additional_image_tokens=1,
                   vision_feature_select_strategy="default", chat_template=TEMPLATE).save_pretrained(folder)
    words.save_pretrained(folder)


main(sys.argv[1])
