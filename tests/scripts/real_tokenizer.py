#!/usr/bin/env python3
"""Compares the tokenizer of a published model with transformers and llama.cpp, on real texts.

    real_tokenizer.py [--model GGUF] [--seed 1] [--texts 20000] [--show 5]

The model is qwen2.5-coder-0.5b.gguf in the cache (real_models.py). The references are transformers' Qwen2Tokenizer
with the file's vocabulary, merges and added tokens, and /tokenize of llama.cpp's server. For each text of
real_texts.py:

  ids         with added tokens recognized in the text, as in a template, and as plain text, as for input from outside
  decoding    ids become the text in normal form C. After each id a stream has passed on as many bytes as Python's
              incremental decoder returns, and at least as many as tokenizers' DecodeStream
  bytes       texts with invalid UTF-8: the ids are those of the valid stretches and of the single bytes between them

llama.cpp does not normalize texts, and treats "</s>" in the vocabulary as an added token. If its ids differ, its ids
of the normalized text show whether that is the reason. Exit code 1 if holorun differs from transformers, or from
llama.cpp for another reason.
"""

import argparse
import codecs
import collections
import random
import sys
import time

import real_models
import real_sides
import real_texts

BATCH = 1000


class Count:
    def __init__(self, show):
        self.equal, self.unequal, self.explained, self.show = (
            collections.Counter(),
            collections.Counter(),
            collections.Counter(),
            show,
        )

    def note(self, name, same, text=None, ours=None, theirs=None, why=None):
        if same:
            self.equal[name] += 1
        elif why:
            self.explained[name, why] += 1
        else:
            self.unequal[name] += 1
            if self.unequal[name] <= self.show:
                at = next((i for i, (a, b) in enumerate(zip(ours or [], theirs or [])) if a != b), 0)
                print(
                    f"{name}: {text!r:.300}\n   item {at}: "
                    f"ours {(ours or [])[at:at + 8]} theirs {(theirs or [])[at:at + 8]}",
                    flush=True,
                )


def check_ids(count, texts, ours, marked, plain):
    """Compares with transformers, both ways; returns our ids of each text."""
    kept = []
    for i in range(0, len(texts), BATCH):
        part = [t for _, t in texts[i : i + BATCH]]
        for special, theirs in ((True, marked), (False, plain)):
            for t, e in zip(part, theirs.encode_batch(part, add_special_tokens=False)):
                ids = ours.ids(t.encode(), special)
                count.note(f"transformers, {'added tokens' if special else 'plain text'}", ids == e.ids, t, ids, e.ids)
                kept.append((t, special, ids))
    return kept


def check_llama(count, kept, llama, added, control, normal):
    for text, special, ids in kept:
        if not special and any(m in text for m in added):
            continue  # it accepts tokens of the kind USER_DEFINED as added ones in any text
        theirs, why = llama.ids(text, special), None
        if ids != theirs:
            if special and any(c in text for c in control):
                why = "control tokens by their looks"
            elif (other := normal.normalize_str(text)) != text and llama.ids(other, special) == ids:
                why = "not normalised"
        count.note(f"llama.cpp, {'added tokens' if special else 'plain text'}", ids == theirs, text, ids, theirs, why)


def check_stream(count, name, ids, raw, ends, passed):
    """Compares the bytes passed on after each id with Python's incremental decoder.

    Python's decoder also keeps back two bytes that could begin a surrogate, for error handlers that accept these."""
    reader, want, at = codecs.getincrementaldecoder("utf-8")("replace"), [], 0
    for end in ends:
        reader.decode(raw[at:end])
        kept = reader.getstate()[0]
        want.append(end if kept[:1] == b"\xed" and kept[1:2] >= b"\xa0" else end - len(kept))
        at = end
    count.note(name, passed == want, ids, passed, want)


def check_decoding(count, kept, ours, marked, normal):
    from tokenizers.decoders import DecodeStream

    for text, special, ids in kept:
        raw, ends, passed = ours.decode(ids)
        if not special:
            want = normal.normalize_str(text).encode()
            count.note("decoded: the text in form C", raw == want, text, list(raw), list(want))
            continue
        want = marked.decode(ids, skip_special_tokens=False).encode()
        count.note("decoded as transformers does", raw == want, text, list(raw), list(want))
        stream, theirs, total, early = DecodeStream(skip_special_tokens=False), [], 0, True
        for i, end, done in zip(ids, ends, passed):
            total += len((stream.step(marked, i) or "").encode())
            theirs.append(total)
            # it keeps back all of an id that ends within a character or in U+FFFD
            early = early and (total == done or total < done and (done < end or raw[:end].endswith(b"\xef\xbf\xbd")))
        count.note("streamed as DecodeStream does, or earlier", early, text, passed, theirs)
        check_stream(count, "streamed as Python's decoder does", ids, raw, ends, passed)


def check_random_ids(count, rng, ours, marked, n):
    """Checks ids that occur in no text: bytes in any order."""
    size = marked.get_vocab_size()
    for _ in range(n):
        ids = [rng.randrange(256) if rng.random() < 0.5 else rng.randrange(size) for _ in range(rng.randint(1, 60))]
        check_stream(count, "streamed random ids", ids, *ours.decode(ids))


def spoil(rng, raw):
    """Returns the bytes of a text with invalid UTF-8 put into it."""
    raw, way = bytearray(raw[:2000]), rng.randrange(4)
    if way == 0:
        return raw.decode("utf-8", "ignore").encode("utf-16-le") + b"\xff"
    for _ in range(rng.randint(1, 8)):
        at = rng.randint(0, len(raw))
        raw[at : at + rng.randint(0, 2)] = rng.choice(
            [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe6\x9d", b"\x80", b"\xf0\x9f"]
        )
    return bytes(raw)


def stretches(raw):
    """Yields (valid, bytes): the longest valid stretches, and single bytes between them."""
    while raw:
        try:
            valid = len(raw.decode().encode())
        except UnicodeDecodeError as e:
            valid = e.start
        yield (True, raw[:valid]) if valid else (False, raw[:1])
        raw = raw[valid or 1 :]


def check_bytes(count, rng, texts, ours, plain, n):
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    alphabet = bytes_to_unicode()
    for _ in range(n):
        raw = spoil(rng, rng.choice(texts)[1].encode())
        want = []
        for valid, part in stretches(raw):
            want += (
                plain.encode(part.decode(), add_special_tokens=False).ids
                if valid
                else [plain.token_to_id(alphabet[part[0]])]
            )
        ids = ours.ids(raw, False)
        count.note("invalid UTF-8", ids == want, raw, ids, want)


def report(count, seconds):
    rows, bad = [], sum(count.unequal.values())
    for name in dict.fromkeys(list(count.equal) + list(count.unequal) + [n for n, _ in count.explained]):
        why = "; ".join(f"{n} {w}" for (of, w), n in sorted(count.explained.items()) if of == name)
        line = f"{count.equal[name]} equal, {count.unequal[name]} unequal" + (f", explained: {why}" if why else "")
        rows.append({"check": f"tokenizer: {name}", "good": not count.unequal[name], "result": line})
        print(f"{name:36} {line}")
    print(f"{seconds:.0f} s, {'all explained' if not bad else f'{bad} UNEXPLAINED'}")
    real_sides.write_rows(rows)
    return bad


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--model", default=real_models.path("qwen2.5-coder-0.5b"))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--texts", type=int, default=20000)
    p.add_argument("--show", type=int, default=5)
    args = p.parse_args()
    begun, count, rng = time.monotonic(), Count(args.show), random.Random(args.seed)
    texts = real_texts.draw(args.seed, args.texts)
    keys = real_sides.read_keys(real_sides.need(args.model))
    marked, plain = real_sides.transformers_tokenizer(keys).backend_tokenizer, real_sides.transformers_tokenizer(
        keys, False
    )
    words, kinds = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.token_type"]
    print(
        f"{len(texts)} texts, {sum(len(t.encode()) for _, t in texts)} bytes, SHA-256 {real_texts.digest(texts)}; "
        f"{real_sides.versions()}"
    )
    ours, llama = real_sides.Holorun(args.model), real_sides.Llama(args.model)
    try:
        kept = check_ids(count, texts, ours, marked, plain)
        print(f"{sum(len(ids) for _, s, ids in kept if s)} ids after {time.monotonic() - begun:.0f} s", flush=True)
        check_decoding(count, kept, ours, marked, marked.normalizer)
        check_random_ids(count, rng, ours, marked, len(texts) // 10)
        check_bytes(count, rng, texts, ours, plain, len(texts) // 20)
        print(f"decoded after {time.monotonic() - begun:.0f} s", flush=True)
        check_llama(count, kept, llama, [w for w, k in zip(words, kinds) if k == 4], ["</s>"], marked.normalizer)
    finally:
        ours.close()
        llama.close()
    return 1 if report(count, time.monotonic() - begun) else 0


if __name__ == "__main__":
    sys.exit(main())
