#!/usr/bin/env python3
"""Writes a tiny vision model with random weights, for third-party servers: peers_model.py FOLDER.

Run from the root of the tree. The model is a Llava of two layers with a chat template in the style of ChatML. It
accepts any text and replies with noise, which must not stop a client.
"""
import glob
import sys

sys.path.pop(0)  # keeps transformers from importing scripts of this folder (kernels) as packages
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor,
                          PreTrainedTokenizerFast, SiglipImageProcessor, SiglipVisionConfig)

SIDE, PATCH = 56, 14
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for p in m['content'] %}"
    "{% if p['text'] is defined %}{{ p['text'] }}{% else %}<image>{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def tokenizer():
    """Trains a byte-level BPE that contains the words of our prompts, so that these have thousands of tokens rather than
    tens of thousands.
    """
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train(sorted(glob.glob("prompts/*")), trainers.BpeTrainer(
        vocab_size=2000, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    fast = PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|im_end|>", pad_token="<|pad|>", bos_token="<|im_start|>")
    fast.add_special_tokens({"additional_special_tokens": ["<image>"]})
    fast.chat_template = TEMPLATE
    return fast


def lean_to_quotes(model, words):
    """Raises the probability of a quote, so that the strings of a reply under a schema end."""
    with torch.no_grad():
        model.get_input_embeddings().weight[:, 0] = 0.5
        model.get_output_embeddings().weight[:, 0] = 0
        model.get_output_embeddings().weight[words.convert_tokens_to_ids('"'), 0] = 2.6


def main(folder):
    torch.manual_seed(1)
    words = tokenizer()
    image = words.convert_tokens_to_ids("<image>")
    vision = SiglipVisionConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                                image_size=SIDE, patch_size=PATCH)
    text = LlamaConfig(vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                       num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=65536,
                       initializer_range=0.2,
                       eos_token_id=words.eos_token_id, pad_token_id=words.pad_token_id, bos_token_id=words.bos_token_id)
    model = LlavaForConditionalGeneration(LlavaConfig(vision_config=vision, text_config=text, image_token_index=image,
                                                      vision_feature_layer=-1, vision_feature_select_strategy="full"))
    lean_to_quotes(model, words)
    model.generation_config.eos_token_id = words.eos_token_id
    model.generation_config.pad_token_id = words.pad_token_id
    model.save_pretrained(folder)
    pictures = SiglipImageProcessor(size={"height": SIDE, "width": SIDE})
    LlavaProcessor(image_processor=pictures, tokenizer=words, patch_size=PATCH, num_additional_image_tokens=0,
                   vision_feature_select_strategy="full", chat_template=TEMPLATE).save_pretrained(folder)
    words.save_pretrained(folder)


main(sys.argv[1])
