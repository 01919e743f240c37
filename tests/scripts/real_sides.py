"""Reads a GGUF file's tokenizer and template with three programs: holorun, transformers, llama.cpp.

Used by real_tokenizer.py and real_template.py.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request

HELPER = "build/release/helpers/model_text"


class Holorun:
    """The helper model_text, which answers one JSON object per line."""

    def __init__(self, model):
        self.process = subprocess.Popen([need(HELPER), model], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{HELPER} ended with {self.process.wait()} at {str(question)[:300]}")
        return json.loads(line)

    def ids(self, raw, special):
        return self.ask(encode=raw.hex(), special=special)["ids"]

    def decode(self, ids):
        """Returns the bytes of ids; after each id the number of bytes, and the number that a stream has passed on.
        """
        answer = self.ask(decode=ids)
        return bytes.fromhex(answer["hex"]), answer["ends"], answer["passed"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


MISSING = 77  # exit code of a check without its model, program or package


def need(name):
    """Returns the file; exits if it does not exist."""
    if not os.path.exists(name):
        print(f"{name} is not there")
        sys.exit(MISSING)
    return name


def write_rows(rows):
    """Adds rows {"check", "good", "result"} to the table of test_real.py."""
    if name := os.environ.get("HOLORUN_REAL_ROWS"):
        with open(name, "a", encoding="utf-8") as f:
            f.writelines(json.dumps(r) + "\n" for r in rows)


def read_keys(model):
    """Returns the values of a GGUF file's keys. The package gguf takes forty seconds for it, this one second.
    """
    with open(model, "rb") as f:
        magic, _, _, n = struct.unpack("<4sIQQ", f.read(24))
        assert magic == b"GGUF", model

        def text():
            return f.read(struct.unpack("<Q", f.read(8))[0]).decode()

        def value(kind):
            if kind == 8:
                return text()
            if kind == 9:
                kind, count = struct.unpack("<IQ", f.read(12))
                return [value(kind) for _ in range(count)]
            form = "<" + "BbHhIif?__QqdX"[kind]
            return struct.unpack(form, f.read(struct.calcsize(form)))[0]

        return {text(): value(struct.unpack("<I", f.read(4))[0]) for _ in range(n)}


def transformers_tokenizer(keys, added=True):
    """Returns transformers' Qwen2Tokenizer with the vocabulary and merges of the file; added: also with its added
    tokens.
    """
    from tokenizers import AddedToken
    from transformers import Qwen2Tokenizer

    kinds, words = keys["tokenizer.ggml.token_type"], keys["tokenizer.ggml.tokens"]
    vocab = {w: i for i, (w, kind) in enumerate(zip(words, kinds)) if kind == 1}
    t = Qwen2Tokenizer(vocab=vocab, merges=[tuple(m.split(" ")) for m in keys["tokenizer.ggml.merges"]])
    if not added:  # the class adds <|endoftext|>
        plain = json.loads(t.backend_tokenizer.to_str())
        plain["added_tokens"] = []
        return type(t.backend_tokenizer).from_str(json.dumps(plain))
    for i, (word, kind) in enumerate(zip(words, kinds)):
        if kind in (3, 4):
            t.add_tokens([AddedToken(word, special=kind == 3, normalized=False)], special_tokens=kind == 3)
            assert t.convert_tokens_to_ids(word) == i, word
    t.chat_template = keys["tokenizer.chat_template"]
    return t


def versions():
    from importlib import metadata

    return ", ".join(f"{p} {metadata.version(p)}" for p in ("transformers", "tokenizers", "Jinja2", "xllamacpp"))


class Llama:
    """llama.cpp's server from the package xllamacpp, in a separate process."""

    def __init__(self, model):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), model, str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(600):
            if self.process.poll() is not None:
                sys.exit("llama.cpp's server ended at its start")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).read()
                return
            except OSError:
                time.sleep(0.2)
        sys.exit("llama.cpp's server did not start within two minutes")

    def post(self, route, body):
        """Returns the answer, or (status, text) of an error."""
        import http.client

        if not hasattr(self, "connection"):
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        self.connection.request("POST", route, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        return json.loads(text) if answer.status == 200 else (answer.status, text)

    def ids(self, text, special):
        return self.post("/tokenize", {"content": text, "add_special": False, "parse_special": special})["tokens"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve(model, port):
    import xllamacpp

    p = xllamacpp.CommonParams()
    p.model.path = model
    p.hostnames, p.port = ["127.0.0.1"], int(port)
    p.n_ctx, p.n_parallel, p.warmup = 256, 1, False
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    p.use_jinja, p.prefill_assistant = True, False
    server = xllamacpp.Server(p)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # its threads may be running


if __name__ == "__main__":
    serve(*sys.argv[1:])
