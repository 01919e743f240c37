# The embedded model: `make pocket` runs every stage of its training after the gate of the one before, unattended, and goes on
# from what the tree keeps in wide/ (WIDE.md).  Where nothing is kept, a model of one theme is made first, whose language the
# rest begins with: pages, language on glyph tokens, eyes for it, three and a half hours on two cores.  It needs Python with
# requirements.txt, Chromium and Xvfb.

POCKET      := assets/pocket
POCKET_RUN  ?= build/pocket
POCKET_PY   ?= python3
POCKET_DATA := $(POCKET_RUN)/train
POCKET_KEPT := $(wildcard $(POCKET)/wide/language20.safetensors)

.PHONY: pocket pocket-table pocket-oracles pocket-ship

pocket: $(if $(POCKET_KEPT),,$(POCKET_RUN)/model/model.safetensors)
	cd $(POCKET)/train && POCKET_STATE=$(abspath $(POCKET_RUN)) $(POCKET_PY) stages.py

$(POCKET_RUN)/model/model.safetensors: $(POCKET_DATA)/shard-00000.jsonl
	cd $(POCKET) && $(POCKET_PY) train.py --data $(abspath $(POCKET_DATA)) --run $(abspath $(POCKET_RUN))/small-eyes --minutes 5 --read 5 --context 2
	cd $(POCKET) && $(POCKET_PY) lm_first.py lm --workers 2 --data $(abspath $(POCKET_DATA)) --run $(abspath $(POCKET_RUN)) --minutes 160 --adam 1e-3 --decay 0.7 --use 1.5 --questions 4 --windows 0.05
	cd $(POCKET) && $(POCKET_PY) lm_first.py eyes --data $(abspath $(POCKET_DATA)) --run $(abspath $(POCKET_RUN)) --vision $(abspath $(POCKET_RUN))/small-eyes/last.pt --minutes 16
	cd $(POCKET) && $(POCKET_PY) lm_first.py merge --run $(abspath $(POCKET_RUN))
	cd $(POCKET) && $(POCKET_PY) export.py --checkpoint $(abspath $(POCKET_RUN))/merged.pt --out $(abspath $(POCKET_RUN))/model

$(POCKET_DATA)/shard-00000.jsonl:
	cd $(POCKET) && $(POCKET_PY) generate.py --out $(abspath $(POCKET_DATA)) --shards 80 --seed 1
	cd $(POCKET) && $(POCKET_PY) generate.py --out $(abspath $(POCKET_RUN))/heldout --shards 2 --seed 2 --heldout

# The table of the model of one theme.
pocket-table:
	cd $(POCKET) && $(POCKET_PY) evaluate.py --model $(abspath $(POCKET_RUN))/model --data $(abspath $(POCKET_RUN))/heldout

# Whether every oracle of the world still gets full reward, by events of the debugging socket and on an X server.
pocket-oracles:
	tests/scripts/miniwob.sh
	cd $(POCKET)/world && $(POCKET_PY) episodes.py prove --out $(abspath $(POCKET_RUN))/oracles-devtools.jsonl; \
	    $(POCKET_PY) episodes.py prove --hands x --out $(abspath $(POCKET_RUN))/oracles-x.jsonl; \
	    $(POCKET_PY) episodes.py table $(abspath $(POCKET_RUN))/oracles-devtools.jsonl $(abspath $(POCKET_RUN))/oracles-x.jsonl

# Makes EYES, POINTER and LANGUAGE, what weights.py kept of three runs, the embedded model: its files, reference values for
# t_pocket, and in wide/ what training needs besides.
pocket-ship:
	cd $(POCKET)/train && $(POCKET_PY) publish.py --tower $(abspath $(EYES)) --pointer $(abspath $(POINTER)) --language $(abspath $(LANGUAGE)) --out ../model
	cd $(POCKET) && $(POCKET_PY) golden.py
	cd $(POCKET)/train && $(POCKET_PY) weights.py split $(abspath $(EYES)) --model ../model --out ../wide/eyes.safetensors
	cd $(POCKET)/train && $(POCKET_PY) weights.py split $(abspath $(POINTER)) --model ../model --out ../wide/pointer.safetensors
	cd $(POCKET)/train && $(POCKET_PY) weights.py split $(abspath $(LANGUAGE)) --model ../model --out ../wide/language20.safetensors
