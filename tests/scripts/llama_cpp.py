"""llama.cpp's C interface in the library of the package xllamacpp: models, batches of tokens, logits.

The package does not expose logits, but its extension module exports llama.cpp's functions, which are called here with
ctypes. Their parameter structs change between versions: the layout below is compared with the defaults that the
library returns, and a different one is refused.
"""
import ctypes
import glob
import os

import numpy as np

F32, F16 = 0, 1
DEFAULTS = {"n_ctx": 512, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1, "type_k": F16, "type_v": F16, "embeddings": False, "offload_kqv": True,
            "no_perf": True, "op_offload": True, "swa_full": True, "kv_unified": False}


class ContextParams(ctypes.Structure):
    """struct llama_context_params"""
    _fields_ = [(n, ctypes.c_uint32) for n in ("n_ctx", "n_batch", "n_ubatch", "n_seq_max", "n_rs_seq", "n_outputs_max", "n_outputs_max_per_seq")]
    _fields_ += [(n, ctypes.c_int32) for n in ("n_threads", "n_threads_batch", "ctx_type", "rope_scaling_type", "pooling_type",
                                               "attention_type", "flash_attn_type")]
    _fields_ += [(n, ctypes.c_float) for n in ("rope_freq_base", "rope_freq_scale", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast",
                                               "yarn_beta_slow")]
    _fields_ += [("yarn_orig_ctx", ctypes.c_uint32), ("defrag_thold", ctypes.c_float), ("cb_eval", ctypes.c_void_p),
                 ("cb_eval_user_data", ctypes.c_void_p), ("type_k", ctypes.c_int32), ("type_v", ctypes.c_int32),
                 ("abort_callback", ctypes.c_void_p), ("abort_callback_data", ctypes.c_void_p), ("new", ctypes.c_uint64)]
    _fields_ += [(n, ctypes.c_bool) for n in ("embeddings", "offload_kqv", "no_perf", "op_offload", "swa_full", "kv_unified")]
    _fields_ += [("samplers", ctypes.c_void_p), ("n_samplers", ctypes.c_size_t), ("ctx_other", ctypes.c_void_p)]


class ModelParams(ctypes.Structure):
    """struct llama_model_params; only its size matters here"""
    _fields_ = [("all", ctypes.c_uint8 * 512)]


class Batch(ctypes.Structure):
    """struct llama_batch"""
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.POINTER(ctypes.c_float)),
                ("pos", ctypes.POINTER(ctypes.c_int32)), ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
                ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]


def load():
    """Loads the library and declares the functions used here."""
    import xllamacpp
    lib = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(xllamacpp.__file__), "xllamacpp*.so"))[0])
    pointer = ctypes.c_void_p
    types = {"llama_context_default_params": (ContextParams, []), "llama_model_default_params": (ModelParams, []),
             "llama_model_load_from_file": (pointer, [ctypes.c_char_p, ModelParams]), "llama_model_free": (None, [pointer]),
             "llama_init_from_model": (pointer, [pointer, ContextParams]), "llama_free": (None, [pointer]),
             "llama_model_get_vocab": (pointer, [pointer]), "llama_vocab_n_tokens": (ctypes.c_int32, [pointer]),
             "llama_vocab_is_eog": (ctypes.c_bool, [pointer, ctypes.c_int32]),
             "llama_tokenize": (ctypes.c_int32, [pointer, ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.c_int32,
                                                 ctypes.c_bool, ctypes.c_bool]),
             "llama_batch_init": (Batch, [ctypes.c_int32] * 3), "llama_batch_free": (None, [Batch]),
             "llama_decode": (ctypes.c_int32, [pointer, Batch]),
             "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), [pointer, ctypes.c_int32]), "llama_backend_init": (None, []),
             "llama_log_set": (None, [pointer, pointer])}
    for name, (result, arguments) in types.items():
        getattr(lib, name).restype, getattr(lib, name).argtypes = result, arguments
    return lib


class Model:
    """A GGUF file and one context of it, with f32 keys and values and without fused attention."""

    def __init__(self, path, sequences, tokens, threads):
        self.lib = load()
        self.quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
        self.lib.llama_log_set(ctypes.cast(self.quiet, ctypes.c_void_p), None)
        self.lib.llama_backend_init()
        params = self.lib.llama_context_default_params()
        wrong = {k: getattr(params, k) for k, v in DEFAULTS.items() if getattr(params, k) != v}
        if wrong:
            raise SystemExit(f"SKIP: this version of xllamacpp has another struct llama_context_params: {wrong}")
        self.model = self.lib.llama_model_load_from_file(path.encode(), self.lib.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"llama.cpp cannot load '{path}'")
        self.vocab = self.lib.llama_model_get_vocab(self.model)
        self.n = self.lib.llama_vocab_n_tokens(self.vocab)
        params.n_ctx, params.n_seq_max, params.n_batch, params.kv_unified = sequences * tokens, sequences, 2048, False
        params.type_k = params.type_v = F32
        params.flash_attn_type = 0
        params.n_threads = params.n_threads_batch = threads
        self.context = self.lib.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit("llama.cpp cannot make a context")
        self.batch = self.lib.llama_batch_init(2048, 0, 1)

    def ids(self, text):
        """Returns the token ids of a text with special tokens and without added ones."""
        data = text.encode()
        out = (ctypes.c_int32 * (len(data) + 8))()
        n = self.lib.llama_tokenize(self.vocab, data, len(data), out, len(out), False, True)
        return list(out[:n])

    def ends(self, token):
        return self.lib.llama_vocab_is_eog(self.vocab, token)

    def decode(self, items):
        """Decodes items (token, position, sequence, wanted). Returns the wanted rows of logits, in order."""
        rows = []
        for first in range(0, len(items), 2048):
            part = items[first:first + 2048]
            self.batch.n_tokens = len(part)
            for i, (token, position, sequence, wanted) in enumerate(part):
                self.batch.token[i], self.batch.pos[i] = token, position
                self.batch.n_seq_id[i], self.batch.logits[i] = 1, wanted
                self.batch.seq_id[i][0] = sequence
            if self.lib.llama_decode(self.context, self.batch):
                raise SystemExit("llama.cpp cannot decode a batch")
            for i, item in enumerate(part):
                if item[3]:
                    rows.append(np.ctypeslib.as_array(self.lib.llama_get_logits_ith(self.context, i), (self.n,)).copy())
        return rows

    def close(self):
        self.lib.llama_batch_free(self.batch)
        self.lib.llama_free(self.context)
        self.lib.llama_model_free(self.model)
