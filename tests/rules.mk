# Building the tests, their helpers and the fuzz targets.
#
# A test tests/ROOM/t_NAME.c becomes the program $(B)/tests/t_NAME, so NAME is unique over all folders.  Every program
# links against the same shared libraries, which hold the debug information once: libtests.so (libholorun and
# tests/support), and either libdevice.so (the GPU interface of this build) or libemu.so (the kernels on the host, for
# t_cuda_*).

# Tests of features that this build lacks; `make test` counts them as skipped.
window_TESTS := t_copies t_step_rules t_step_window t_window t_window_layout t_window_marks
serve_TESTS  := t_qa_far t_serve t_serve_apis t_serve_clients t_serve_hostile t_serve_lenient t_serve_pictures \
                t_serve_shapes t_serve_tools t_text_model
view_TESTS   := t_desk_view
NOT_BUILT    := $(foreach f,$(LEFT_OUT),$($f_TESTS))

TEST_SRC    := $(filter-out $(foreach t,$(NOT_BUILT),$(wildcard tests/*/$t.c)),$(wildcard tests/*/t_*.c))
TEST_OBJ    := $(TEST_SRC:%.c=$(B)/%.o)
# These draw random data and need no display; make nightly repeats them.
DRAWN_ROOMS := actions base cuda model ops session text
TEST_ROOMS  := $(sort $(patsubst tests/%/,%,$(dir $(TEST_SRC))))
TESTS       := $(patsubst %.c,$(B)/tests/%,$(notdir $(TEST_SRC)))
# Programs of one folder.
tests_of     = $(patsubst tests/$1/%.c,$(B)/tests/%,$(filter tests/$1/%,$(TEST_SRC)))
CUDA_TESTS  := $(filter $(B)/tests/t_cuda_%,$(TESTS))
GPU_TESTS   := $(CUDA_TESTS:$(B)/tests/%=$(B)/gpu/%)
SUPPORT_SRC := $(filter-out $(if $(filter window,$(LEFT_OUT)),tests/support/example.c),$(wildcard tests/support/*.c))
SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$(B)/%.o)
HELPER_OBJ  := $(patsubst %.c,$(B)/%.o,$(wildcard tests/helpers/*.c))
FORM_OBJ    := $(patsubst %.c,$(B)/%.o,$(wildcard tests/form/*.c))
WITHOUT_OBJ := $(B)/tests/helpers/without.o # a whole program, see below
HELPERS     := $(patsubst $(B)/tests/helpers/%.o,$(B)/helpers/%,$(filter-out $(WITHOUT_OBJ),$(HELPER_OBJ)))

# A test runs once after it was built, so it is compiled without much optimization; the library under test is optimized.
QUICK := $(if $(ASAN),,-O1 $(filter %truncation,$(UNSURE)))
$(TEST_OBJ) $(SUPPORT_OBJ): FLAGS += -Itests/support -Itests $(QUICK)
$(HELPER_OBJ): FLAGS += -Itests/support
$(FORM_OBJ): FLAGS += -Itests $(shell pkg-config --cflags freetype2 2>/dev/null)

# $(call link_shared,OBJECTS,LIBRARIES), $(call link_test,LIBRARIES): a relinked shared library needs no relinked test.
# gold takes a fifth of the time of the default linker.
GOLD       := $(if $(ASAN),,$(if $(shell command -v ld.gold),-fuse-ld=gold))
link_shared = $(CC) $(FLAGS) $(LDFLAGS) $(GOLD) -shared -o $@ $1 $2
link_test   = $(CC) $(FLAGS) $(LDFLAGS) $(GOLD) $(PIE) -o $@ $(filter %.o,$^) \
              -L$(B) -Wl,-rpath,'$$ORIGIN/..',--no-as-needed $1 -Wl,--as-needed $(LIBS) -lcmocka

$(B)/libtests.so: $(LIB_OBJ) $(SUPPORT_OBJ)
	$(call say,LINK)
	$(Q)$(call link_shared,$^,$(LIBS) -lcmocka)
$(B)/libdevice.so: $(CUDA_OBJ)
	$(call say,LINK)
	$(Q)$(call link_shared,$^,$(CUDA_LIBS))
$(B)/libemu.so: $(EMU_OBJ)
	$(call say,LINK)
	$(Q)$(call link_shared,$^,-lstdc++ -Wl$(comma)-Bsymbolic-functions)

$(foreach s,$(TEST_SRC),$(eval $(B)/tests/$(basename $(notdir $s)): $(s:%.c=$(B)/%.o)))
$(filter-out $(CUDA_TESTS),$(TESTS)): | $(B)/libtests.so $(B)/libdevice.so
	$(call say,LINK)
	$(Q)$(call link_test,-ltests -ldevice)
$(CUDA_TESTS): | $(B)/libtests.so $(B)/libemu.so
	$(call say,LINK)
	$(Q)$(call link_test,-ltests -lemu)
$(B)/tests/t_desk_view: LIBS += $(shell pkg-config --libs libvncclient 2>/dev/null)

# The tests of the kernels with the kernels themselves, for a machine with a GPU (make test-gpu).
$(GPU_TESTS): $(B)/gpu/%: $(B)/tests/cuda/%.o | $(B)/libtests.so $(B)/libdevice.so
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(call link_test,-ltests -ldevice)

# Programs that tests run beside themselves.
$(HELPERS): $(B)/helpers/%: $(B)/tests/helpers/%.o | $(B)/libtests.so $(B)/libdevice.so
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(call link_test,-ltests -ldevice)

# The program with a switch that leaves out some corrections of the embedded model, to measure them.
$(B)/helpers/without: $(WITHOUT_OBJ) $(filter-out %/main.o,$(PROGRAM_OBJ)) $(B)/libholorun.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) $(PIE) -o $@ $^ $(LIBS)

# Preloaded into the program, it makes one of its system calls or allocations fail.
$(B)/helpers/inject.so: tests/inject/inject.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g $(WARN) -fPIC -shared -o $@ $< -ldl

# A hundred of these run beside a hundred sessions, so it links only with the libraries it needs.
$(B)/helpers/form: $(FORM_OBJ) $(B)/libholorun.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) $(PIE) -o $@ $^ $(shell pkg-config --libs x11 freetype2 glib-2.0 2>/dev/null) -lm

# Fuzz targets (clang's libFuzzer) build the library once more, with clang's coverage and sanitizers.
FUZZERS    := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_FLAGS := $(filter-out $(WARN) $(HARDEN),$(FLAGS)) -Itests/support -O1 -fsanitize=address,undefined \
              -fno-sanitize-recover=all
FUZZ_OBJ   := $(LIB_SRC:%.c=build/fuzz/%.o) build/fuzz/cuda/none.o
# Kernels read no external input, and sanitizers make clang compile them for minutes.
build/fuzz/src/ops/ops_avx2.o: FUZZ_FLAGS += $(AVX2) -fno-sanitize=all
build/fuzz/src/ops/ops_avx512.o: FUZZ_FLAGS += $(AVX512) -fno-sanitize=all
build/fuzz/src/ops/ops_avx512bf16.o: FUZZ_FLAGS += $(AVX512) $(AVX512_BF16) -fno-sanitize=all
build/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CLANG)
	$(Q)clang $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(FUZZ_OBJ)
	$(call say,CLANG)
	$(Q)clang $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $< $(FUZZ_OBJ) $(LIBS)

-include $(TEST_OBJ:.o=.d) $(SUPPORT_OBJ:.o=.d) $(HELPER_OBJ:.o=.d) $(FORM_OBJ:.o=.d) $(FUZZ_OBJ:.o=.d)
