# holorun - one binary: `make` builds it, `make help` lists the other targets.
#
# Every .c file under src/ and actions/ is compiled.  src/main.c and src/cmd/ belong to the program only; all other
# files go into libholorun.a.  Dialect files become part of the binary.  ASAN=1 builds with AddressSanitizer and UBSan
# into a directory of its own.  Warnings are errors with WERROR=1 only, as in .ci/run: another compiler may know
# warnings that this one does not.

CC     ?= gcc
B      := build/$(if $(ASAN),asan,release)

# Libraries without which nothing is built, as pkg-config names them (libxdo has no such name).
REQUIRED := x11 x11-xcb xau xcb xtst xext xfixes xdamage xrandr xi jansson libpcre2-8 spng libjpeg libxxhash libmd \
            yaml-0.1 glib-2.0 dbus-1 libcurl
# Features that are left out where their libraries are missing, and with WITHOUT="window serve view".  Their names and
# packages for messages are in src/base/feature.c.
FEATURES      := window serve view
window_PKGS   := sdl2 pangocairo
window_SRC    := $(wildcard src/step/scene*.c src/step/window*.c) src/step/paint.c src/step/focus.c
window_NONE   := src/step/window_none.c
window_NEEDS  := the step window: libsdl2-dev libpango1.0-dev
serve_PKGS    := libmicrohttpd
serve_SRC     := $(addprefix src/serve/,server.c exchange.c framing.c stream.c trainer.c)
serve_NONE    := src/serve/server_none.c
serve_NEEDS   := the command serve: libmicrohttpd-dev
view_PKGS     := libvncserver
view_SRC      := src/desk/view_viewer.c
view_NONE     := src/desk/view_none.c
view_NEEDS    := VNC viewers of a desktop: libvncserver-dev
exists         = $(shell pkg-config --exists $1 2>/dev/null && echo yes)
LEFT_OUT      := $(foreach f,$(FEATURES),$(if $(filter $f,$(WITHOUT)),$f,$(if $(call exists,$($f_PKGS)),,$f)))
BUILT_IN      := $(filter-out $(LEFT_OUT),$(FEATURES))
PKGS          := $(foreach f,$(BUILT_IN),$($f_PKGS)) $(REQUIRED)
# One set of flags for all features, so that a build that leaves out others compiles little again.
FLAG_PKGS     := $(foreach f,$(FEATURES),$(if $(call exists,$($f_PKGS)),$($f_PKGS))) $(REQUIRED)
UNUSED_SRC    := $(foreach f,$(BUILT_IN),$($f_NONE)) $(foreach f,$(LEFT_OUT),$(filter-out $($f_NONE),$($f_SRC)))
upper          = $(shell echo $1 | tr a-z A-Z)
DEFINES       := $(foreach f,$(LEFT_OUT),-DHOLORUN_WITHOUT_$(call upper,$f))

# Tables leave out members that are zero, and callbacks do not use every parameter.
WARN   := -Wall -Wextra $(if $(WERROR),-Werror) -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
          -Wwrite-strings -Wvla -Wno-missing-field-initializers -Wno-unused-parameter
accepts = $(shell echo 'int main(void){return 0;}' | $(CC) -Werror $(1) -x c -o /dev/null - 2>/dev/null && echo '$(1)')
# Warnings of gcc that are wrong with sanitizers or without inlining; clang does not know their names.
UNSURE := $(call accepts,-Wno-format-truncation) $(call accepts,-Wno-maybe-uninitialized)
# clang before 22 does not define the macro by which our sources know AddressSanitizer.
TOLD   := $(if $(ASAN),$(shell $(CC) -fsanitize=address -dM -E -x c /dev/null 2>/dev/null \
          | grep -q __SANITIZE_ADDRESS__ || echo -D__SANITIZE_ADDRESS__))
SAN    := $(if $(ASAN),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all $(UNSURE) $(TOLD))
CFLAGS ?= $(if $(ASAN),-O1 -fno-omit-frame-pointer,-O3) -g
# Mitigations of memory errors that a hostile client or file may trigger.  Sanitizers have their own checks.
comma  := ,
HARDEN := $(if $(ASAN),,-U_FORTIFY_SOURCE $(if $(filter -O0,$(CFLAGS)),,-D_FORTIFY_SOURCE=2) -fstack-protector-strong \
          $(call accepts,-fcf-protection=full) $(call accepts,-fstack-clash-protection))
PIE    := $(if $(ASAN),,-pie)
LDFLAGS += $(if $(ASAN),,-Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now$(comma)-z$(comma)noexecstack)
# The same objects go into the program and into the shared library of the tests.
PIC    := -fPIC $(call accepts,-fno-semantic-interposition)
FLAGS  := -std=gnu11 -D_GNU_SOURCE -Isrc -I. $(CFLAGS) $(WARN) $(SAN) $(HARDEN) $(PIC) -fno-math-errno \
          -pthread $(shell pkg-config --cflags $(FLAG_PKGS) 2>/dev/null)
LIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lxdo -lm

# Kernels of other processors are left out.
MACHINE     := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
OTHER_SRC   := $(if $(filter x86_64,$(MACHINE)),,$(wildcard src/ops/ops_avx*.c)) \
               $(if $(filter aarch64,$(MACHINE)),,$(wildcard src/ops/ops_neon*.c))
PROGRAM_SRC := src/main.c $(wildcard src/cmd/*.c)
LIB_SRC     := $(filter-out $(PROGRAM_SRC) $(UNUSED_SRC) $(OTHER_SRC),$(wildcard src/*/*.c src/*/*/*.c actions/*.c))
LIB_OBJ     := $(LIB_SRC:%.c=$(B)/%.o)
PROGRAM_OBJ := $(PROGRAM_SRC:%.c=$(B)/%.o)
PROGRAM     := $(if $(ASAN),$(B)/holorun,holorun)

.SECONDARY:
.PHONY: all
all: $(PROGRAM) ## build ./holorun

include cuda/rules.mk

# V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) '$(patsubst $(B)/%,%,$@)')

$(PROGRAM): $(PROGRAM_OBJ) $(B)/libholorun.a
	$(call say,LINK)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) $(PIE) -o $@ $^ $(LIBS)
	@$(foreach f,$(LEFT_OUT),echo '  NOTE  built without $($f_PKGS), needed for $($f_NEEDS)';)

# A thin archive: it refers to the objects, which saves 36 MB. The wrapper of ar knows objects of -flto.
AR := $(shell $(CC) -print-prog-name=$(if $(findstring -flto,$(CFLAGS)),$(if $(findstring clang,$(CC)),llvm-ar,gcc-ar),ar) 2>/dev/null)
$(B)/libholorun.a: $(LIB_OBJ) $(CUDA_OBJ) $(B)/left-out
	$(call say,AR)
	@rm -f $@
	$(Q)$(AR) rcsT $@ $(filter %.o,$^)

$(B)/left-out: always
	@mkdir -p $(@D)
	@echo '$(LEFT_OUT)' | cmp -s - $@ || echo '$(LEFT_OUT)' >$@
$(B)/src/base/feature.o: $(B)/left-out
$(B)/src/base/feature.o: FLAGS += $(DEFINES)

# Everything is compiled again if the compiler or its flags (other than warnings) differ from the last build. `make
# install` keeps those of the last build: sudo does not pass on a CC or CFLAGS of the environment.
$(B)/flags: export FLAGS_NOW := $(lastword $(CC)) $(filter-out $(WARN),$(FLAGS))
$(B)/flags: always
	@pkg-config --exists --print-errors $(REQUIRED) || { \
	    echo 'make: libraries are missing; $(SCRIPTS)/install.sh build installs them on Debian' >&2; exit 1; }
	@mkdir -p $(@D)
	@$(if $(filter install,$(MAKECMDGOALS)),[ -s $@ ] ||) echo "$$FLAGS_NOW" | cmp -s - $@ || echo "$$FLAGS_NOW" >$@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(FLAGS) -MMD -MP -c -o $@ $<

# Kernels are compiled once for each instruction set; which one runs is chosen at start.
AVX2        := -mavx2 -mfma -mf16c
AVX512      := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma
AVX512_BF16 := -mavx512bf16 -mavx512vnni
$(B)/src/ops/ops_avx2.o: FLAGS += $(AVX2)
$(B)/src/ops/ops_avx512.o: FLAGS += $(AVX512)
$(B)/src/ops/ops_avx512bf16.o: FLAGS += $(AVX512) $(AVX512_BF16)
$(B)/src/ops/ops_neondot.o: FLAGS += -march=armv8.2-a+dotprod
$(B)/src/ops/ops_neonbf16.o: FLAGS += -march=armv8.2-a+dotprod+bf16+i8mm

# Build information for `holorun version`; the file is written only if its content changes.
KERNELS := ref $(filter-out ref,$(patsubst src/ops/ops_%.c,%,$(filter src/ops/ops_%.c,$(LIB_SRC))))
$(B)/build.h: always
	@mkdir -p $(@D)
	@{ echo '#define HOLORUN_BUILD "$(if $(wildcard .git),$(shell git describe --tags --always --dirty 2>/dev/null))"'; \
	   echo '#define HOLORUN_KERNELS "$(KERNELS)"'; \
	   echo '#define HOLORUN_PACKAGES "$(foreach p,$(PKGS),$(p) $(shell pkg-config --modversion $(p) 2>/dev/null))"'; \
	} >$@.new
	@cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@
$(B)/src/cmd/version.o: $(B)/build.h
$(B)/src/cmd/version.o: FLAGS += -I$(B)

# A dialect is data in the source tree and bytes in the binary.
$(B)/actions/dialect_builtin.o: $(wildcard prompts/*)
$(B)/src/trace/report.o: src/trace/report.html
$(B)/src/trace/page.o: src/trace/page.css
$(B)/src/replay/diff_page.o: src/replay/diff.html
$(B)/src/qa/report/page.o: src/qa/report/page.html
$(B)/src/gate/policy.o: src/gate/builtin.yaml
$(B)/src/host/mcp_tools.o: src/host/mcp_tools.json
$(B)/src/ops/gguf_iq.o: src/ops/gguf_grids.bin
$(B)/src/eval/calibrate_screen.o: assets/calibrate/glyphs.png

include tests/rules.mk

SCRIPTS := tests/scripts
BENCH   := tests/bench
FUZZ_SECONDS ?= 10

# A make within this one need not say where it is, nor that there is nothing to do.
QUIET := --no-print-directory $(if $(V),,-s)

.PHONY: always host-clients serve-clients serve-soak serve-turns demo demo-many pictures qa qa-right qa-chaos test-peers \
        test-real injections test tests $(TEST_ROOMS:%=test-%) test-gpu gpu-tests card stop-latency typing fuzz \
        mutants lint nightly format bench bench-gpu bench-peers install uninstall deb deb-try distros ci-try clean help
demo: ## install missing packages, build, and book a flight on a private desktop (TASK="…", ON=:0)
	@$(SCRIPTS)/install.sh build demo
	@$(MAKE) $(QUIET) -j2 holorun
	@$(SCRIPTS)/demo.sh
demo-many: ## 20 flight tasks and 60 dialogs with unseen words, scored by the pages
	@$(SCRIPTS)/install.sh build demo
	@$(MAKE) $(QUIET) -j2 holorun
	@$(SCRIPTS)/demo_many.sh
pictures: ## the pictures of README.md, from real runs (PICTURES="run step report qa")
	@$(SCRIPTS)/install.sh build demo pictures
	@$(MAKE) $(QUIET) -j2 holorun
	@$(SCRIPTS)/pictures.sh $(PICTURES)
qa: ## our own suites with the embedded model, and how often it succeeds (SUITE="miniwob", SEEDS=20, JOBS=4)
	@$(SCRIPTS)/install.sh build demo qa
	@$(MAKE) $(QUIET) -j2 holorun $(B)/helpers/form
	@$(SCRIPTS)/qa.sh
qa-right: holorun ## the suites of dialogs, desktops and forms from scripts that do them right (SUITE="forms", JOBS=4)
	@$(SCRIPTS)/install.sh build demo qa
	@$(SCRIPTS)/qa_right.sh
test: ## install missing packages, build, run every test (ASAN=1: with sanitizers)
	@$(SCRIPTS)/install.sh build demo test
	@$(MAKE) $(QUIET) -j$(shell nproc) all tests
	@$(SCRIPTS)/templates.sh
	@B=$(B) HOLORUN_TEST_NOT_BUILT='$(NOT_BUILT)' $(SCRIPTS)/run_tests.sh $(B)/tests $(notdir $(TESTS))
$(TEST_ROOMS:%=test-%): test-%: all $(HELPERS) $(B)/helpers/form $(B)/helpers/inject.so
	@$(MAKE) $(QUIET) $(call tests_of,$*)
	@B=$(B) $(SCRIPTS)/run_tests.sh $(B)/tests $(notdir $(call tests_of,$*))
tests: $(TESTS) $(HELPERS) $(B)/helpers/form $(B)/helpers/inject.so
test-peers: holorun $(B)/helpers/form ## whole runs and calibration against other projects' servers (pip installs them)
	@$(SCRIPTS)/peers_serve.sh ./holorun
test-real: holorun $(HELPERS) ## tokenizer, template and replies of two published models (pip; CHECKS="tokenizer")
	@python3 $(SCRIPTS)/test_real.py $(CHECKS)
qa-chaos: holorun $(B)/helpers/xclient $(B)/tests/t_qa_chaos ## kill a process of a suite at MOMENTS=30 random moments
	@HOLORUN_MOMENTS=$(or $(MOMENTS),30) $(B)/tests/t_qa_chaos
injections: holorun $(B)/helpers/inject.so $(B)/helpers/xclient $(B)/tests/t_injections
injections: ## let 300 system calls and allocations fail (N=300)
	@$(SCRIPTS)/injections.sh $(or $(N),300) $(B)
test-gpu: ## the tests of the kernels on a GPU, then under compute-sanitizer where that is installed
	@$(SCRIPTS)/gpu.sh '$(NVCC)'
	@$(SCRIPTS)/install.sh build test
	@$(MAKE) $(QUIET) -j$(shell nproc) CUDA=1 holorun gpu-tests
	@$(SCRIPTS)/test_gpu.sh $(B)/gpu
gpu-tests: $(GPU_TESTS)
card: ## kernels, counters, the fleet benchmark and GPU tests in ten minutes, built for this GPU only (LIMIT=600)
	@$(SCRIPTS)/gpu.sh '$(NVCC)'
	@$(SCRIPTS)/card.sh
fuzz: ## run every fuzz target for FUZZ_SECONDS each, from its seeds
	@$(SCRIPTS)/install.sh build lint
	@$(MAKE) $(QUIET) -j2 $(FUZZERS)
	@$(SCRIPTS)/fuzz.sh $(FUZZ_SECONDS) $(FUZZERS)
mutants: ## put known mistakes into a copy of the sources, one by one: which test notices? (TABLE=cuda: of kernels)
	@$(SCRIPTS)/install.sh build test
	@$(SCRIPTS)/mutants.sh
lint: ## clang-format (check only); cppcheck and clang-tidy of the sources that have changed (LINT=all: of all)
	@$(SCRIPTS)/install.sh build test lint
	@$(SCRIPTS)/lint.sh
nightly: ## lint all sources, run all tests, then four times those whose random data differs in each run
	@LINT=all $(MAKE) $(QUIET) WERROR=1 lint
	@$(MAKE) $(QUIET) WERROR=1 test
	@HOLORUN_TEST_ROUNDS=4 $(MAKE) $(QUIET) WERROR=1 $(DRAWN_ROOMS:%=test-%)
format: ## rewrite the sources with clang-format
	clang-format -i $(wildcard src/*.[ch] src/*/*.[ch] src/*/*/*.[ch] actions/*.[ch] tests/*/*.[ch] tests/emu/*.cc \
	    cuda/*.cu cuda/*.cuh cuda/*.[ch])
bench: holorun ## speed against the machine's own limits
	./holorun bench
bench-gpu: ## the benchmark on a GPU, into tests/results (without one: the commands for a machine that has one)
	@$(SCRIPTS)/gpu.sh '$(NVCC)' || { rc=$$?; $(BENCH)/bench_gpu.sh help; exit $$rc; }
	@$(SCRIPTS)/install.sh build
	@$(MAKE) $(QUIET) -j$(shell nproc) CUDA=1 holorun
	@$(BENCH)/bench_gpu.sh ./holorun
bench-peers: holorun $(B)/helpers/peer_model ## holorun and llama.cpp ($LLAMA_CPP or PATH) on the same random weights
	@$(BENCH)/bench_peers.sh ./holorun $(B)/helpers/peer_model
stop-latency: holorun $(B)/helpers/xclient $(B)/helpers/stop_latency
stop-latency: ## how soon a run stops, at MOMENTS random moments: one session, then 20
	@$(B)/helpers/stop_latency $(or $(MOMENTS),200) 1
	@$(B)/helpers/stop_latency $(or $(MOMENTS),200) 20
typing: ## text typed into eight kinds of program, and keys after killed runs (TEXTS=25 each, KILLS=500)
	@$(SCRIPTS)/install.sh build demo test typing
	@$(MAKE) $(QUIET) -j2 holorun $(B)/helpers/xclient $(B)/tests/t_programs $(B)/tests/t_sticky
	@B=$(B) $(SCRIPTS)/typing.sh $(or $(TEXTS),25) $(or $(KILLS),500)
serve-clients: holorun $(B)/helpers/tiny_dirs_write ## the packages openai and anthropic as clients (pip install them)
	@python3 $(SCRIPTS)/serve_clients.py ./holorun
	@$(SCRIPTS)/templates.sh && python3 $(SCRIPTS)/serve_tools.py ./holorun $(B)/helpers/tiny_dirs_write
host-clients: holorun $(B)/helpers/xclient ## clients of the packages mcp and agent-client-protocol (pip install them)
	@python3 tests/hosts/mcp_client.py build/hosts && python3 tests/hosts/acp_client.py build/hosts
	@tests/hosts/demo.sh
serve-turns: holorun ## 30 turns with an image each, 1 and 16 clients, and llama.cpp's server (pip: gguf xllamacpp)
	@python3 $(BENCH)/serve_turns.py --holorun ./holorun

serve-soak: holorun ## kill 16 clients of `holorun serve` at random moments for SECONDS (3600): nothing may leak
	@python3 $(SCRIPTS)/serve_soak.py $(or $(SECONDS),3600) 16 ./holorun
PREFIX ?= /usr/local
DEST    = "$(DESTDIR)$(PREFIX)"
SHARE   = $(DEST)/share
install: holorun ## program, model, demo, manual pages, completion and user units under PREFIX (/usr/local)
	install -D -m 755 holorun $(DEST)/bin/holorun
	install -D -m 644 -t $(SHARE)/holorun/pocket assets/pocket/model/*
	install -D -m 755 -t $(SHARE)/holorun/eval assets/eval/convert.sh assets/eval/reliability.py
	install -m 644 -t $(SHARE)/holorun/eval assets/eval/parquet.py
	install -D -m 644 -t $(SHARE)/holorun/demo assets/demo/* $(SCRIPTS)/desktop.sh
	install -m 755 -t $(SHARE)/holorun/demo $(SCRIPTS)/demo.sh
	rm -rf $(B)/pages && mkdir -p $(B)/pages && ./holorun help --pages $(B)/pages
	install -D -m 644 -t $(SHARE)/man/man1 $(B)/pages/*.1
	install -d $(SHARE)/bash-completion/completions $(SHARE)/zsh/vendor-completions $(SHARE)/fish/vendor_completions.d
	./holorun completion bash >$(SHARE)/bash-completion/completions/holorun
	./holorun completion zsh >$(SHARE)/zsh/vendor-completions/_holorun
	./holorun completion fish >$(SHARE)/fish/vendor_completions.d/holorun.fish
	install -d $(DEST)/lib/systemd/user
	for unit in desk serve; do sed 's|/usr/bin/|$(PREFIX)/bin/|' assets/systemd/holorun-$$unit.service \
	    >$(DEST)/lib/systemd/user/holorun-$$unit.service; done
uninstall: ## remove the files of install (the same PREFIX and DESTDIR)
	rm -f $(DEST)/bin/holorun $(SHARE)/man/man1/holorun.1 $(SHARE)/man/man1/holorun-*.1
	rm -f $(SHARE)/bash-completion/completions/holorun $(SHARE)/zsh/vendor-completions/_holorun
	rm -f $(SHARE)/fish/vendor_completions.d/holorun.fish $(DEST)/lib/systemd/user/holorun-*.service
	rm -rf $(SHARE)/holorun
deb: ## the Debian packages holorun and holorun-headless of this tree, in build/deb
	@$(SCRIPTS)/install.sh build deb
	@$(SCRIPTS)/deb.sh
deb-try: ## each package alone in a bare Debian: installed, the demo, removed (as root; DEMO=no: without a browser)
	@$(SCRIPTS)/install.sh bare
	@$(SCRIPTS)/deb_try.sh
distros: ## builds, demo and tests in bare Debian systems (as root; SUITES="trixie", STEPS="demo test", ROOT=DIR)
	@$(SCRIPTS)/install.sh bare
	@$(SCRIPTS)/distributions.sh $(SUITES)
ci-try: ## the steps of assets/ci in a bare Debian (as root)
	@$(SCRIPTS)/install.sh bare
	@$(SCRIPTS)/ci_try.py
clean: ## remove everything that was built
	rm -rf build holorun
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo '  make test-ROOM    the tests of one folder: $(TEST_ROOMS)' | fmt -w 118 -t
	@echo '  make pocket       train the embedded model (hours; see assets/pocket/README.md)'

# How the embedded model was made: hours of training, never part of demo or test.
include assets/pocket/pocket.mk

-include $(LIB_OBJ:.o=.d) $(PROGRAM_OBJ:.o=.d) $(EMU_OBJ:.o=.d)
