# The embedded model, made again from nothing: pages, language on glyph tokens, eyes, both together.
# `make pocket` needs Python with requirements.txt, Chromium and Xvfb; it takes hours on one core,
# and every stage goes on where it stopped.

POCKET      := assets/pocket
POCKET_RUN  ?= build/pocket
POCKET_PY   ?= python3
POCKET_DATA := $(POCKET_RUN)/train

.PHONY: pocket pocket-table

pocket: $(POCKET_DATA)/shard-00000.jsonl
	cd $(POCKET) && $(POCKET_PY) train.py --data $(abspath $(POCKET_DATA)) --run $(abspath $(POCKET_RUN))/eyes --minutes 5 --read 5 --context 2
	cd $(POCKET) && $(POCKET_PY) lm_first.py lm --data $(abspath $(POCKET_DATA)) --run $(abspath $(POCKET_RUN)) --minutes 120 --adam 1e-3
	cd $(POCKET) && $(POCKET_PY) lm_first.py eyes --data $(abspath $(POCKET_DATA)) --run $(abspath $(POCKET_RUN)) --vision $(abspath $(POCKET_RUN))/eyes/last.pt --minutes 24
	cd $(POCKET) && $(POCKET_PY) lm_first.py merge --run $(abspath $(POCKET_RUN)) --vision $(abspath $(POCKET_RUN))/eyes/last.pt
	cd $(POCKET) && $(POCKET_PY) train.py --data $(abspath $(POCKET_DATA)) --run $(abspath $(POCKET_RUN))/joint --from $(abspath $(POCKET_RUN))/merged.pt --read 0 --muon 5e-4 --adam 5e-4 --minutes 240
	cd $(POCKET) && $(POCKET_PY) export.py --checkpoint $(abspath $(POCKET_RUN))/joint/last.pt --out model
	cd $(POCKET) && $(POCKET_PY) golden.py

$(POCKET_DATA)/shard-00000.jsonl:
	cd $(POCKET) && $(POCKET_PY) generate.py --out $(abspath $(POCKET_DATA)) --shards 80 --seed 1
	cd $(POCKET) && $(POCKET_PY) generate.py --out $(abspath $(POCKET_RUN))/heldout --shards 2 --seed 2 --heldout

pocket-table:
	cd $(POCKET) && $(POCKET_PY) evaluate.py --model model --data $(abspath $(POCKET_RUN))/heldout
