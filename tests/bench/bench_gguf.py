"""Compares holorun with llama.cpp on a GGUF file of random weights in the shape of Qwen3.5-0.8B, in turn: A B A B ...

    python bench_gguf.py HOLORUN [--form BF16|Q8_0] [--rounds N] [--threads N] [--folder DIR] [--log FILE]
                         [--activations int8] [--processor] [--tiny]

Needs numpy, gguf and xllamacpp (a wheel that contains llama.cpp) from PyPI; prints SKIP without them.  Both programs
read the same text.gguf and mmproj.gguf, which are written to the directory once.  holorun is measured as an HTTP
server, llama.cpp through its library:

    prompt     tokens/s of a prompt of 512 tokens
    decode     tokens/s after the prompt, one session
    sixteen    tokens/s of 16 sessions together
    picture    seconds of the first turn of a conversation, an image of 1280x704 and two words
    turn       seconds of the second turn, with a new image of 1280x704, up to its first token

A row has the median of the rounds, and of the ratios of neighbouring rounds; JSON lines follow.  Use a quiet machine.
--processor measures CPU seconds instead, which depend little on the load; it is fair with --threads 1 only, because
waiting threads may spin.  --log stores each round; the rows include earlier calls, so rounds can be run one at a time.
"""
import argparse
import base64
import json
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zlib

try:
    import gguf
    import numpy as np
    import xllamacpp
except ImportError as lacking:
    sys.exit(print(f"SKIP: {lacking}; pip install numpy gguf xllamacpp") or 0)

FULL = dict(layers=24, hidden=1024, mlp=3584, heads=8, kv=2, dim=256, keys=16, values=16, state=128, vocab=248320, turned=64,
            section=[11, 11, 10], depth=12, width=768, vheads=12, vmlp=3072, side=48)
TINY = dict(layers=4, hidden=256, mlp=512, heads=4, kv=2, dim=64, keys=2, values=4, state=64, vocab=512, turned=32,
            section=[6, 5, 5], depth=2, width=64, vheads=2, vmlp=128, side=8)
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<think>", "</think>"]
TEMPLATE = ("{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}{%- if message.content is string %}"
            "{{- message.content }}{%- else %}{%- for part in message.content %}{%- if part.type == 'text' %}{{- part.text }}"
            "{%- else %}{{- '<|vision_start|><|image_pad|><|vision_end|>' }}{%- endif %}{%- endfor %}{%- endif %}"
            "{{- '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}"
            "{%- endif %}")
PROMPT, ALONE, MORE, SESSIONS, PICTURE = 512, 96, 32, 16, (1280, 704)

# ---- files ------------------------------------------------------------------------------------------


class File:
    """Tensors of random values: each row is a copy of one block of numbers from another offset."""

    def __init__(self, path, arch, form):
        self.w, self.form = gguf.GGUFWriter(path, arch), gguf.GGMLQuantizationType[form]
        self.tile = np.random.default_rng(1).standard_normal(1 << 22).astype(np.float32)
        self.at = 0

    def vector(self, name, n, mean=0.0, spread=0.1):
        self.w.add_tensor(name, mean + spread * self.tile[self.at:self.at + n])
        self.at = (self.at + 131) % (1 << 20)

    def plain(self, name, *shape, spread=0.1):
        n = int(np.prod(shape))
        self.w.add_tensor(name, (spread * np.resize(np.roll(self.tile, self.at), n)).reshape(shape).astype(np.float32))
        self.at = (self.at + 131) % (1 << 20)

    def matrix(self, name, rows, cols):
        form = self.form if cols % gguf.GGML_QUANT_SIZES[self.form][0] == 0 else gguf.GGMLQuantizationType.BF16
        some = min(rows, len(self.tile) // cols)
        data = gguf.quants.quantize((self.tile[:some * cols] / cols ** 0.5).reshape(some, cols), form)
        data = data[(np.arange(rows) * 7 + self.at) % some]
        self.at = (self.at + 131) % (1 << 20)
        self.w.add_tensor(name, data, raw_dtype=form)

    def close(self):
        self.w.write_header_to_file()
        self.w.write_kv_data_to_file()
        self.w.write_tensors_to_file()
        self.w.close()


def letters():
    """Returns GPT-2's spelling of each byte."""
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    hidden = [b for b in range(256) if b not in shown]
    return [chr(b) for b in shown] + [chr(256 + i) for i in range(len(hidden))]


def write_text(path, s, form):
    f, arch = File(path, "qwen35", form), "qwen35"
    w, inner, key = f.w, s["values"] * s["state"], s["keys"] * s["state"]
    for name, v in (("block_count", s["layers"]), ("embedding_length", s["hidden"]), ("feed_forward_length", s["mlp"]),
                    ("context_length", 32768), ("attention.head_count", s["heads"]), ("attention.head_count_kv", s["kv"]),
                    ("attention.key_length", s["dim"]), ("attention.value_length", s["dim"]), ("ssm.conv_kernel", 4),
                    ("ssm.state_size", s["state"]), ("ssm.group_count", s["keys"]), ("ssm.time_step_rank", s["values"]),
                    ("ssm.inner_size", inner), ("full_attention_interval", 4), ("rope.dimension_count", s["turned"])):
        w.add_uint32(f"{arch}.{name}", v)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(1e7)
    w.add_rope_dimension_sections([*s["section"], 0])
    words = letters() + MARKS + ['!"']  # the result of the single merge, which llama.cpp requires
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen35")
    w.add_token_list(words + [f"[PAD{i}]" for i in range(len(words), s["vocab"])])
    w.add_token_types([1] * 256 + [3] * 6 + [4] * 2 + [1] + [5] * (s["vocab"] - len(words)))
    w.add_token_merges(['! "'])
    w.add_eos_token_id(258)
    w.add_chat_template(TEMPLATE)
    f.matrix("token_embd.weight", s["vocab"], s["hidden"])
    f.vector("output_norm.weight", s["hidden"], 1)
    for i in range(s["layers"]):
        at = f"blk.{i}."
        f.vector(at + "attn_norm.weight", s["hidden"], 1)
        f.vector(at + "post_attention_norm.weight", s["hidden"], 1)
        if i % 4 == 3:
            f.matrix(at + "attn_q.weight", 2 * s["heads"] * s["dim"], s["hidden"])
            f.matrix(at + "attn_k.weight", s["kv"] * s["dim"], s["hidden"])
            f.matrix(at + "attn_v.weight", s["kv"] * s["dim"], s["hidden"])
            f.matrix(at + "attn_output.weight", s["hidden"], s["heads"] * s["dim"])
            f.vector(at + "attn_q_norm.weight", s["dim"], 1)
            f.vector(at + "attn_k_norm.weight", s["dim"], 1)
        else:
            f.matrix(at + "attn_qkv.weight", 2 * key + inner, s["hidden"])
            f.matrix(at + "attn_gate.weight", inner, s["hidden"])
            f.matrix(at + "ssm_alpha.weight", s["values"], s["hidden"])
            f.matrix(at + "ssm_beta.weight", s["values"], s["hidden"])
            f.plain(at + "ssm_conv1d.weight", 2 * key + inner, 4, spread=0.5)
            f.vector(at + "ssm_dt.bias", s["values"], -4, 2)
            f.vector(at + "ssm_a", s["values"], -4, 0.5)
            f.vector(at + "ssm_norm.weight", s["state"], 1)
            f.matrix(at + "ssm_out.weight", s["hidden"], inner)
        f.matrix(at + "ffn_gate.weight", s["mlp"], s["hidden"])
        f.matrix(at + "ffn_up.weight", s["mlp"], s["hidden"])
        f.matrix(at + "ffn_down.weight", s["hidden"], s["mlp"])
    f.close()


def write_eyes(path, s):
    f = File(path, "clip", "BF16")
    for name, v in (("block_count", s["depth"]), ("embedding_length", s["width"]), ("feed_forward_length", s["vmlp"]),
                    ("attention.head_count", s["vheads"]), ("patch_size", 16), ("projection_dim", s["hidden"]),
                    ("spatial_merge_size", 2), ("image_size", s["side"] * 16)):
        f.w.add_uint32(f"clip.vision.{name}", v)
    f.w.add_clip_has_vision_encoder(True)
    f.w.add_clip_projector_type("qwen3vl_merger")
    f.w.add_vision_use_gelu(True)
    f.w.add_vision_attention_layernorm_eps(1e-6)
    f.w.add_vision_image_mean([0.5] * 3)
    f.w.add_vision_image_std([0.5] * 3)
    e, m = s["width"], s["vmlp"]
    for part in ("", ".1"):
        f.plain("v.patch_embd.weight" + part, e, 3, 16, 16, spread=0.03)
    f.vector("v.patch_embd.bias", e)
    f.plain("v.position_embd.weight", s["side"] ** 2, e)
    for i in range(s["depth"]):
        at = f"v.blk.{i}."
        for name, rows, cols in (("attn_qkv", 3 * e, e), ("attn_out", e, e), ("ffn_up", m, e), ("ffn_down", e, m)):
            f.matrix(at + name + ".weight", rows, cols)
            f.vector(at + name + ".bias", rows)
        for name in ("ln1", "ln2"):
            f.vector(at + name + ".weight", e, 1)
            f.vector(at + name + ".bias", e)
    f.vector("v.post_ln.weight", e, 1)
    f.vector("v.post_ln.bias", e)
    for name, rows in (("mm.0", 4 * e), ("mm.2", s["hidden"])):
        f.matrix(name + ".weight", rows, 4 * e)
        f.vector(name + ".bias", rows)
    f.close()


# ---- requests ---------------------------------------------------------------------------------------


def png(seed, w, h):
    """Returns an image of coloured squares."""
    cells = np.random.default_rng(seed).integers(0, 256, (h // 16, w // 16, 3), np.uint8)
    rows = np.repeat(np.repeat(cells, 16, 0), 16, 1)
    raw = b"".join(b"\0" + r.tobytes() for r in rows)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(raw, 1)) + chunk(b"IEND", b""))


def user(text, seed=None, size=PICTURE):
    parts = [{"type": "text", "text": text}]
    if seed is not None:
        url = "data:image/png;base64," + base64.b64encode(png(seed, *size)).decode()
        parts.insert(0, {"type": "image_url", "image_url": {"url": url}})
    return {"role": "user", "content": parts}


def words(n, seed):
    return "".join(np.random.default_rng(seed).choice(list("abcdefghijklmnop "), n))


class Ours:
    def __init__(self, program, place, threads, more):
        self.home = tempfile.mkdtemp()
        token = os.path.join(self.home, "token")
        self.p = subprocess.Popen([program, "serve", "--model", place, "--threads", str(threads), "--listen", "127.0.0.1:0", "--served-name", "x",
                                   "--token-file", token, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.url = None
        for line in self.p.stdout:
            if found := re.search(r"https?://[\d.]+:\d+", line):
                self.url = found[0]
                break
            print(line, end="", file=sys.stderr)
        if not self.url:
            raise RuntimeError("holorun did not start")
        threading.Thread(target=self.p.stdout.read, daemon=True).start()
        with open(token) as f:
            self.key = f.read().strip()

    def processor(self):
        with open(f"/proc/{self.p.pid}/stat") as f:
            user, system = f.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def chat(self, messages, tokens):
        body = json.dumps({"model": "x", "messages": messages, "max_tokens": tokens, "temperature": 0}).encode()
        r = urllib.request.Request(self.url + "/v1/chat/completions", body, {"Authorization": "Bearer " + self.key, "Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(r, timeout=3600))

    def close(self):
        self.p.terminate()
        self.p.wait()
        shutil.rmtree(self.home, ignore_errors=True)


class Theirs:
    def __init__(self, place, threads):
        p = xllamacpp.CommonParams()
        p.model.path, _, eyes = place.partition(",")
        if eyes:
            p.mmproj.path = eyes
        p.n_ctx, p.n_parallel, p.n_gpu_layers, p.mmproj_use_gpu = 4096 * SESSIONS, SESSIONS, 0, False
        p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
        self.s = xllamacpp.Server(p)

    def chat(self, messages, tokens):
        got = self.s.handle_chat_completions({"messages": messages, "max_tokens": tokens, "temperature": 0, "cache_prompt": True})
        if "choices" not in got:
            raise RuntimeError(str(got)[:300])
        return got

    def processor(self):
        return time.process_time()

    def close(self):
        del self.s


def timed(clock, f, *args):
    t = clock()
    got = f(*args)
    return clock() - t, got


def measure(s, seed, processor):
    """Runs one round; returns rates, and seconds of the turns with an image."""
    clock = s.processor if processor else time.monotonic
    read, got = timed(clock, s.chat, [user(words(PROMPT, seed))], 1)
    both, more = timed(clock, s.chat, [user(words(PROMPT, seed + 1))], 1 + ALONE)
    n = more["usage"]["completion_tokens"] - 1
    out = {"prompt": got["usage"]["prompt_tokens"] / read, "decode": n / max(both - read, 1e-9)}
    done = []
    threads = [threading.Thread(target=lambda k=k: done.append(s.chat([user(words(16, seed + k))], MORE))) for k in range(SESSIONS)]
    t = clock()
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    out["sixteen"] = sum(d["usage"]["completion_tokens"] for d in done) / (clock() - t)
    talk = [user("Look.", seed)]
    out["picture"], got = timed(clock, s.chat, talk, 1)
    talk += [{"role": "assistant", "content": got["choices"][0]["message"]["content"] or ""}, user("And now?", seed + 1)]
    out["turn"] = timed(clock, s.chat, talk, 1)[0]
    return out


def main():
    a = argparse.ArgumentParser()
    a.add_argument("program")
    a.add_argument("--form", default="Q8_0", choices=["BF16", "Q8_0"])
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--folder", default=os.path.expanduser("~/.cache/holorun/peers-gguf"))
    a.add_argument("--log", help="file of rounds, one JSON object a line")
    a.add_argument("--activations", default="auto", choices=["auto", "int8", "bf16"], help="of holorun alone")
    a.add_argument("--processor", action="store_true", help="processor time instead of the clock's")
    a.add_argument("--tiny", action="store_true", help="only to see that everything runs")
    o = a.parse_args()
    sizes = TINY if o.tiny else FULL
    os.makedirs(o.folder, exist_ok=True)
    front = os.path.join(o.folder, "tiny-" if o.tiny else "")
    text, eyes = f"{front}text-{o.form}.gguf", f"{front}mmproj.gguf"
    if not os.path.exists(text):
        write_text(text + ".new", sizes, o.form)
        os.rename(text + ".new", text)
    if not os.path.exists(eyes):
        write_eyes(eyes + ".new", sizes)
        os.rename(eyes + ".new", eyes)
    place, rounds = f"{text},{eyes}", []
    more = ["--activations", o.activations]
    if o.log and os.path.exists(o.log):
        with open(o.log) as f:
            rounds = [json.loads(line) for line in f]
    for k in range(len(rounds), len(rounds) + o.rounds):
        one = {"load": os.getloadavg()[0]}
        for name, make in (("holorun", lambda: Ours(o.program, place, o.threads, more)), ("llama.cpp", lambda: Theirs(place, o.threads))):
            s = make()
            one[name] = measure(s, 100 * k, o.processor)
            s.close()
            print(name, {r: round(v, 3) for r, v in one[name].items()}, file=sys.stderr, flush=True)
        rounds.append(one)
        if o.log:
            with open(o.log, "a") as f:
                f.write(json.dumps(one) + "\n")
    for row in ("prompt", "picture", "decode", "sixteen", "turn"):
        ours, theirs = ([x[n][row] for x in rounds] for n in ("holorun", "llama.cpp"))
        ratios = [(b / a if row in ("picture", "turn") else a / b) for a, b in zip(ours, theirs)]
        print(json.dumps({"row": row, "form": o.form, "threads": o.threads, "activations": o.activations, "rounds": len(rounds), "holorun": statistics.median(ours),
                          "llama.cpp": statistics.median(theirs), "times": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}))


if __name__ == "__main__":
    main()
