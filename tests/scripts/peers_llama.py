#!/usr/bin/env python3
"""Starts llama.cpp's own server from the package xllamacpp: peers_llama.py FOLDER PORT [CONTEXT] [SLOTS] [THREADS].

Serves FOLDER/text.gguf with FOLDER/eyes.gguf on 127.0.0.1 until a signal arrives.
"""
import os
import signal
import sys

import xllamacpp


def main(folder, port, context="32768", slots="1", threads="1"):
    p = xllamacpp.CommonParams()
    p.model.path = f"{folder}/text.gguf"
    p.mmproj.path = f"{folder}/eyes.gguf"
    p.model_alias = ["tiny"]
    p.hostnames, p.port = ["127.0.0.1"], int(port)
    p.n_ctx, p.n_parallel = int(context), int(slots)
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = int(threads)
    p.use_jinja = True
    p.endpoint_props = p.endpoint_metrics = True
    server = xllamacpp.Server(p)
    print(server.listening_address, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0)) # its threads may be running
    signal.pause()


main(*sys.argv[1:])
