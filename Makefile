# holorun - one binary: `make` builds it, `make help` lists the rest.
#
# Every .c under src/ and actions/ is compiled.  src/main.c and src/cmd_*.c belong to the program only;
# everything else goes into libholorun.a, which the tests link against.  Dialect files become part of
# the binary.  ASAN=1 builds everything with AddressSanitizer and UBSan into a folder of its own.

CC     ?= gcc
PKGS   := x11 xtst xext xfixes xdamage xrandr xi jansson libpcre2-8 libspng libxxhash
B      := build/$(if $(ASAN),asan,release)
WARN   := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla
SAN    := $(if $(ASAN),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all)
CFLAGS ?= -O3 -g
FLAGS  := -std=gnu11 -D_GNU_SOURCE -Isrc -I. $(CFLAGS) $(WARN) $(SAN) -fno-math-errno -pthread $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lxdo -lm

PROGRAM_SRC := src/main.c $(wildcard src/cmd_*.c)
LIB_SRC     := $(filter-out $(PROGRAM_SRC),$(wildcard src/*.c src/*/*.c actions/*.c))
LIB_OBJ     := $(LIB_SRC:%.c=$(B)/%.o)
PROGRAM_OBJ := $(PROGRAM_SRC:%.c=$(B)/%.o)
TESTS       := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/t_*.c))
PROGRAM     := $(if $(ASAN),$(B)/holorun,holorun)

.PHONY: all
all: $(PROGRAM) ## build ./holorun

$(PROGRAM): $(PROGRAM_OBJ) $(B)/libholorun.a
	$(CC) $(FLAGS) -o $@ $^ $(LIBS)

$(B)/libholorun.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/%: tests/%.c $(B)/libholorun.a
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MMD -MP -o $@ $< $(B)/libholorun.a $(LIBS) -lcmocka

# Kernels are compiled once for each instruction set; which one runs is chosen at start.
$(B)/src/ops/ops_avx2.o: FLAGS += -mavx2 -mfma -mf16c
$(B)/src/ops/ops_avx512.o: FLAGS += -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma
$(B)/src/ops/ops_avx512bf16.o: FLAGS += -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma

# A dialect is data in the source tree and bytes in the binary.
$(B)/actions/dialect_builtin.o: $(wildcard prompts/*)

.PHONY: tests clean help
tests: $(TESTS) ## build the unit tests
clean: ## remove everything that was built
	rm -rf build holorun
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

-include $(LIB_OBJ:.o=.d) $(PROGRAM_OBJ:.o=.d) $(TESTS:=.d)
