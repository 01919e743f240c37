# Training of the embedded model (assets/pocket/README.md): `make pocket` runs every stage of python -m pocket plan and
# continues from the parameters in the repository.  Needs Python with requirements.txt, Chromium, Xvfb and a CUDA GPU.

POCKET     := assets/pocket
POCKET_RUN ?= build/pocket
POCKET_PY  ?= python3

.PHONY: pocket pocket-ship

pocket:
	cd $(POCKET) && POCKET_STATE=$(abspath $(POCKET_RUN)) $(POCKET_PY) -m pocket plan

# Publishes RUN, a directory with the kept files of a run: model/, the reference values of t_pocket, and wide/.
pocket-ship:
	cd $(POCKET) && $(POCKET_PY) -m pocket publish --run $(abspath $(RUN)) --out model --wide wide
	cd $(POCKET) && $(POCKET_PY) -m pocket golden
