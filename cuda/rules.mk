# Build rules of the CUDA kernels, included by the Makefile.
#
# If nvcc is found (or with CUDA=1), the kernels are compiled for all GPUs from Ampere on and linked into the program.
# The CUDA runtime is linked statically, so that the program also starts without an NVIDIA driver. Otherwise (or with
# CUDA=0) the stub cuda/none.c is used. Tests also compile the sources as ordinary C++, which runs on the host: see
# tests/emu.

NVCC  ?= $(shell command -v nvcc)
CUDA  ?= $(if $(NVCC),1,0)
CUDA_SRC  := $(wildcard cuda/*.cu)
CUDA_DEPS := $(wildcard cuda/*.cuh cuda/*.h)

ifeq ($(CUDA),1)
comma      := ,
# All architectures that this nvcc supports: 12.4 ends at 90.
CARDS      ?= $(filter $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch)),80 86 89 90 100 120)
CUDA_HOME  := $(shell $(NVCC) --dryrun -x cu /dev/null 2>&1 | sed -n 's/.*_HERE_=//p')/..
# The code is the same for all architectures before 9.0, and for all from 9.0 on (device.cuh). The compiler's front end
# therefore runs once for each of these two groups. PTX is included for architectures that are not listed.
for_cards   = $(if $2,-gencode 'arch=compute_$1$(comma)code=[$(foreach c,$2,sm_$c$(comma))compute_$1]')
EARLY      := $(filter 80 86 87 89,$(CARDS))
BOTH       := $(call for_cards,80,$(EARLY)) $(call for_cards,90,$(filter-out $(EARLY),$(CARDS)))
GENCODE    := $(subst $(comma) sm,$(comma)sm,$(subst $(comma) compute,$(comma)compute,$(BOTH)))
SQUEEZE    := $(if $(shell $(NVCC) --help | grep -e --compress-mode),--compress-mode=size)
NVCC_FLAGS := -std=c++17 -O3 $(SQUEEZE) -Isrc -I. $(if $(WERROR),-Werror all-warnings) $(GENCODE) \
              -Xcompiler -fPIC,-Wall,-Wextra,-Wno-unused-parameter
CUDA_OBJ   := $(CUDA_SRC:cuda/%.cu=build/cuda/%.o)
CUDA_LIBS  := $(foreach d,lib lib64 targets/x86_64-linux/lib,-L$(CUDA_HOME)/$(d)) \
              -lcudart_static -ldl -lrt -lpthread -lstdc++
LIBS       += $(CUDA_LIBS)
build/cuda/%.o: cuda/%.cu $(CUDA_DEPS)
	@mkdir -p $(@D)
	$(if $(V),,@printf '  %-5s %s\n' NVCC cuda/$*)
	$(Q)$(NVCC) $(NVCC_FLAGS) -c -o $@ $<
else
CUDA_OBJ  := $(B)/cuda/none.o
endif

# The kernels compiled for the host.
EMU_FLAGS := -std=c++17 -D_GNU_SOURCE -Itests/emu -Isrc -I. $(or $(EMU_OPT),-O2) -g -fPIC -Wall -Wextra \
             $(if $(WERROR),-Werror) -Wno-unused-parameter -Wno-unknown-pragmas $(SAN)
EMU_SRC   := $(wildcard tests/emu/*.cc)
EMU_OBJ   := $(CUDA_SRC:cuda/%.cu=$(B)/emu/%.o) $(EMU_SRC:tests/emu/%.cc=$(B)/emu/%.o)
# The instrumentation of memory accesses calls tests/emu/watch.cc; it cannot be combined with other sanitizers.
EMU_WATCH := $(if $(SAN),,-fsanitize=thread -fsanitize=alignment --param tsan-instrument-func-entry-exit=0)
$(B)/emu/%.o: cuda/%.cu
	@mkdir -p $(@D)
	$(call say,C++)
	$(Q)$(CXX) -x c++ $(EMU_FLAGS) $(EMU_WATCH) -MMD -MP -c -o $@ $<
$(EMU_SRC:tests/emu/%.cc=$(B)/emu/%.o): $(B)/emu/%.o: tests/emu/%.cc
	@mkdir -p $(@D)
	$(call say,C++)
	$(Q)$(CXX) $(EMU_FLAGS) $(if $(SAN),,-O3) -MMD -MP -c -o $@ $<
