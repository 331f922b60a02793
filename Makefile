# gepolab: one non-recursive Makefile.
#
#   make demo       fresh machine -> packages, build, a delay sweep, its figures
#   make check      fresh machine -> packages, build, all tests
#   make            build/gepolab only
#
# Variables: BUILD (build folder), CC, ARCH (e.g. native), SANITIZE (e.g. address,undefined),
# OPT (default -O3), PREFIX (default /usr/local), DESTDIR, LIBDIR and ZSHDIR for install, SUITE (of make check: only suites whose name begins
# with these words, e.g. SUITE='cli: bias'; make check SUITE=list names them all), TEST (only tests of
# that name),
# CUDA (0: without, even where nvcc is found), EMULATE (0: no kernels on the host in make check),
# V (1: show every command),
# BUNDLE_SM (of make gpu-bundle: the kind of GPU, 90 for the H100 and H200),
# STUDY (of make figures and make study-paper; default the demo's), STUDIES (of make studies), PYTHON (of the peers of
# make bench and make bench-gpu), BENCH (words of gepolab bench: make bench BENCH='llm --json').

BUILD    ?= build
Q        := $(if $(V),,@)
OPT      ?= -O3
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
ZSHDIR   ?= $(PREFIX)/share/zsh/site-functions
ARCH     ?=
SANITIZE ?=
SUITE    ?=
TEST     ?=
STUDY    ?= $(BUILD)/demo.db
PYTHON   ?= python3

# A switch over an enum names every value: one that is added later cannot be forgotten anywhere.
WARN     := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror=switch-enum
CPPFLAGS += -I. -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -DGEPOLAB_VERSION='"$(VERSION)"'
CFLAGS   += -std=c11 $(OPT) -g -ffp-contract=off $(WARN) $(if $(ARCH),-march=$(ARCH)) \
            $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
LDFLAGS  += $(if $(SANITIZE),-fsanitize=$(SANITIZE))
VERSION  := $(shell cat VERSION)

PACKAGES := gcc libc6-dev pkg-config libgsl-dev libopenblas-dev gnuplot-nox fonts-dejavu-core libcunit1-dev \
            libsqlite3-dev libyaml-dev libcjson-dev librandom123-dev libxxhash-dev libpcre2-dev libutf8proc-dev \
            libflint-dev $(if $(filter bookworm jammy,$(shell sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)),libflint-arb-dev)

# Libraries: asked for lazily, so that `make deps` works before they exist.
PKGS      = gsl openblas sqlite3 yaml-0.1 libcjson libpcre2-8 libutf8proc
PKG_CFLAGS = $(eval PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null))$(PKG_CFLAGS)
# OpenBLAS is the CBLAS: GSL's own reference one would shadow it.
PKG_LIBS   = $(eval PKG_LIBS := $(filter-out -lgslcblas,$(shell pkg-config --libs $(PKGS) 2>/dev/null)))$(PKG_LIBS)
# Arb: a library of its own before FLINT 3. Only the program has llm/answer, libgepolab does not.
ARB_LIBS   = $(eval ARB_LIBS := $(firstword $(foreach l,flint-arb arb,$(if $(filter /%,$(shell $(CC) -print-file-name=lib$(l).so)),-l$(l)))) -lflint)$(ARB_LIBS)

# Found, never required. Sanitized builds leave MPI out: its library reports leaks of its own.
MPICC    := $(if $(SANITIZE),,$(shell command -v mpicc 2>/dev/null))
CUDA     ?= 1
NVCC     := $(if $(filter 0,$(CUDA))$(SANITIZE),,$(shell command -v nvcc 2>/dev/null))
MPI_CFLAGS := $(if $(MPICC),-DGEPOLAB_WITH_MPI $(shell $(MPICC) --showme:compile 2>/dev/null))
MPI_LIBS   := $(if $(MPICC),$(shell $(MPICC) --showme:link 2>/dev/null))

ROOMS    := core sim toy llm analysis library experiments
# Every C file below some folders, and the objects made of them.
sources   = $(sort $(shell find $(1) -name '*.c'))
obj       = $(patsubst %.c,$(BUILD)/%.o,$(call sources,$(1)))
SRC      := $(call sources,$(ROOMS))
RESOURCES := $(wildcard plots/*.gp) $(wildcard experiments/recipes/*.yaml) \
             $(wildcard experiments/clusters/*.yaml) experiments/report/report.css \
             $(wildcard experiments/cli/completion.*sh)
EMBED    := $(BUILD)/gen/resources.o $(BUILD)/gen/source.o
LIBS     := $(foreach r,analysis sim toy llm core,$(BUILD)/lib$(r).a)
# What libgepolab is made of.
SHARED_ROOMS := analysis sim toy core
LDLIBS    = $(PKG_LIBS) $(ARB_LIBS) $(MPI_LIBS) $(CUDA_LIBS) -lm -lpthread

.PHONY: all check demo figures paper bench bench-gpu gpu-bundle deps install uninstall sanitize sanitize-address sanitize-thread racecheck valgrind fuzz torture clean format format-check help force
all: $(BUILD)/gepolab

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

# Row loops of llm/ are written to be vectorised; the CPU backend is compiled once for every machine
# and once for each form of wider instructions, which it chooses when it runs. Loops that the
# compiler vectorises have 32 bytes with AVX-512, too, so that their sums have AVX2's bits.
LLM_CFLAGS  := -fopenmp-simd -fno-math-errno -fno-trapping-math -Wno-pass-failed
AVX2_CFLAGS := $(if $(filter x86_64 amd64,$(shell uname -m)),-mavx2 -mfma)
AVX512_CFLAGS := $(if $(AVX2_CFLAGS),$(AVX2_CFLAGS) -mavx512f -mavx512vl -mavx512dq -mavx512bw -mprefer-vector-width=256)

# CUDA's runtime is linked statically; cuBLASLt is opened when a GPU is used, from the loader's path
# or the toolkit's folder as it was at build time. Machine code for sm_80 and sm_90, and PTX that
# drivers compile for what comes later. NCCL is opened the same way where its header was found.
ifneq ($(NVCC),)
CUDA_LIB   := $(abspath $(lastword $(shell $(NVCC) --dryrun -x cu /dev/null 2>&1 | sed -n 's/^.*LIBRARIES=//p' | tr -d '"' | sed 's/-L//g')))
CUDA_MAJOR := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
CUDA_OBJ   := $(patsubst %.cu,$(BUILD)/%.cu.o,$(wildcard llm/backend/cuda/*.cu))
NVCC_CODE  := -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
CUDA_LIBS  := -L$(CUDA_LIB) -lcudart_static -lstdc++ -ldl -lrt
NVCCFLAGS  := -std=c++17 -O3 -I. -lineinfo -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wshadow \
              -DGEPOLAB_CUDA_LIB='"$(CUDA_LIB)"' -DGEPOLAB_CUDA_MAJOR='"$(CUDA_MAJOR)"'
endif

# --- build ---------------------------------------------------------------------------------------

# Changes when the compiler or its flags do, or with CUDA=0: what depends on them is made anew.
$(BUILD)/gen/cuda-flags: force
	@mkdir -p $(@D); echo $(NVCC) $(NVCC_CODE) $(subst ",,$(NVCCFLAGS)) | cmp -s - $@ || \
	   echo $(NVCC) $(NVCC_CODE) $(subst ",,$(NVCCFLAGS)) > $@
define compile_kernels
@mkdir -p $(@D)
$(Q)$(shell command -v ccache) $(NVCC) $(NVCCFLAGS) $(NVCC_CODE) $(PKG_CFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
endef
$(BUILD)/llm/backend/cuda/%.cu.o: llm/backend/cuda/%.cu $(BUILD)/gen/cuda-flags
	$(compile_kernels)
$(BUILD)/llm/backend/open/open.o: CPPFLAGS += $(if $(NVCC),-DGEPOLAB_WITH_CUDA)
$(BUILD)/llm/backend/open/open.o: $(BUILD)/gen/cuda-flags

# Code of the shared library: in any place of memory, and only what library/gepolab.h marks is seen.
$(foreach r,library $(SHARED_ROOMS),$(BUILD)/$(r)/%.o): CFLAGS += -fPIC -fvisibility=hidden
$(BUILD)/llm/%.o $(BUILD)/tests/llm/%.o $(BUILD)/tests/support/llm_%.o: CFLAGS += $(LLM_CFLAGS)
$(BUILD)/llm/backend/cpu/f32%.o $(BUILD)/llm/backend/cpu/f64%.o: CFLAGS += -ffp-contract=fast
$(BUILD)/llm/backend/cpu/f32_avx2.o $(BUILD)/llm/backend/cpu/f64_avx2.o: CFLAGS += $(AVX2_CFLAGS)
$(BUILD)/llm/backend/cpu/f32_avx512.o $(BUILD)/llm/backend/cpu/f64_avx512.o: CFLAGS += $(AVX512_CFLAGS)
$(BUILD)/%.o: %.c Makefile VERSION
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(if $(filter experiments/%,$<),$(MPI_CFLAGS)) $(CFLAGS) -MMD -MP -c -o $@ $<

define room
$(BUILD)/lib$(1).a: $$(call obj,$(1)) $$(if $$(filter llm,$(1)),$$(CUDA_OBJ))
	@rm -f $$@ && $$(AR) qcs $$@ $$^
endef
$(foreach r,core sim toy llm analysis,$(eval $(call room,$(r))))

# Recipes and plot scripts travel inside the binary: `gepolab run quickstart` works from anywhere.
$(BUILD)/gen/resources.S: $(RESOURCES) Makefile
	@mkdir -p $(@D)
	@{ echo '.section .rodata'; i=0; for f in $(RESOURCES); do \
	     echo "name$$i: .asciz \"$$f\""; echo "data$$i: .incbin \"$$f\""; echo "end$$i: .byte 0"; \
	     i=$$((i+1)); done; \
	   echo '.section .data.rel.ro,"aw"'; echo '.balign 8'; echo '.globl resource_table'; \
	   echo 'resource_table:'; i=0; for f in $(RESOURCES); do \
	     echo ".quad name$$i, data$$i, end$$i - data$$i"; i=$$((i+1)); done; \
	   echo '.quad 0, 0, 0'; echo '.section .note.GNU-stack,"",%progbits'; } > $@
$(BUILD)/gen/resources.o: $(BUILD)/gen/resources.S
	$(Q)$(CC) -c -o $@ $<

# The commit that the program is built from, which runs keep: asked at every build, compiled when it
# is another one.
$(BUILD)/gen/source.c: force
	@experiments/write_source.sh $@ $(NVCC)
$(BUILD)/gen/source.o: $(BUILD)/gen/source.c
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<

$(BUILD)/gepolab: $(call obj,experiments) $(EMBED) $(LIBS)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# --- libgepolab ----------------------------------------------------------------------------------

# Programs find it by its interface's major number; what it exports is in library/symbols.txt.
SONAME    := libgepolab.so.0
SHARED    := $(BUILD)/$(SONAME)
STATIC    := $(BUILD)/libgepolab.a
SHARED_LIBS = $(filter-out -lpcre2-8,$(PKG_LIBS)) -lm -lpthread
.PHONY: library
library: $(SHARED) $(STATIC) $(BUILD)/gepolab.pc

$(SHARED): $(call obj,library) $(foreach r,$(SHARED_ROOMS),$(BUILD)/lib$(r).a) library/export.map
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=library/export.map \
	   -Wl,--as-needed $(if $(SANITIZE),,-Wl,-z,defs) -o $@ $(filter %.o %.a,$^) $(SHARED_LIBS)
	@ln -sf $(SONAME) $(BUILD)/libgepolab.so
# One object with all that the public functions need, whose other names are its own.
$(STATIC): $(call obj,library) $(foreach r,$(SHARED_ROOMS),$(BUILD)/lib$(r).a)
	@mkdir -p $(BUILD)/gen && $(LD) -r -o $(BUILD)/gen/libgepolab.o $^
	@objcopy --wildcard --keep-global-symbol='gepolab_*' $(BUILD)/gen/libgepolab.o
	@rm -f $@ && $(AR) qcs $@ $(BUILD)/gen/libgepolab.o
$(BUILD)/gepolab.pc: library/gepolab.pc.in VERSION Makefile
	@sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|; s|@VERSION@|$(VERSION)|; s|@PRIVATE@|$(SHARED_LIBS)|' $< > $@

# --- tests ---------------------------------------------------------------------------------------

# Files of tests/fuzz and tests/emulate are programs and parts of their own; so is the torture's main.
TEST_SRC  := $(filter-out tests/fuzz/% tests/emulate/% tests/extend/% tests/torture/main.c tests/torture/clock_shim.c tests/library/consumer/%,$(call sources,tests))
TEST_OBJ  := $(TEST_SRC:%.c=$(BUILD)/%.o)
EXP_LIB   = $(filter-out $(BUILD)/experiments/cli/main.o,$(call obj,experiments)) $(EMBED)

$(BUILD)/gepolab-tests: $(TEST_OBJ) $(EXP_LIB) $(call obj,library) $(LIBS)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcunit $(LDLIBS)

# The kernels of the CUDA backend, compiled by g++ for a device that tests/emulate makes of the host,
# in the place of the real ones. ThreadSanitizer does not follow its fibers; sanitizers of two
# compilers do not mix.
EMULATE   ?= 1
CXX_FOUND := $(if $(filter 0,$(EMULATE)),,$(if $(SANITIZE),$(if $(findstring thread,$(SANITIZE))$(findstring clang,$(CC)),,$(shell command -v g++)),$(shell command -v g++)))
EMULATED  := $(patsubst llm/backend/cuda/%.cu,$(BUILD)/emulate/cuda/%.o,$(wildcard llm/backend/cuda/*.cu)) \
             $(patsubst tests/emulate/%.cpp,$(BUILD)/emulate/%.o,$(wildcard tests/emulate/*.cpp)) \
             $(patsubst tests/emulate/%.cu,$(BUILD)/emulate/%.o,$(wildcard tests/emulate/*.cu)) \
             $(patsubst tests/emulate/%.c,$(BUILD)/emulate/%.o,$(wildcard tests/emulate/*.c)) \
             $(BUILD)/emulate/open.o
EMULATED_TESTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard experiments/bench/gpu*.c) $(patsubst %,experiments/bench/%.c,bench workload) \
                    experiments/base/args.c experiments/base/process.c \
                    tests/support/main.c $(wildcard tests/llm/backend/cuda/*.c) \
                    tests/support/llm_backend_cases.c tests/support/llm_backend_run.c tests/support/llm_model.c tests/support/llm_files.c)
EMULATED_SUITES := cuda emulated
EMULATE_CXXFLAGS = -x c++ -std=c++17 -DGEPOLAB_EMULATE -Itests/emulate -I. -O1 -g -Wall -Wextra -Wshadow -Werror=switch-enum -Wno-unknown-pragmas \
                    $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer) $(RACE_DEFINE)
# Kernels that tell tests/emulate/race.cpp of every load and store.
RACE_DEFINE := $(if $(RACES),-DGEPOLAB_EMULATE_RACES)
KERNEL_CXXFLAGS = $(EMULATE_CXXFLAGS) $(if $(RACES),-fsanitize=thread)

$(BUILD)/emulate/cuda/%.o: llm/backend/cuda/%.cu Makefile
	@mkdir -p $(@D)
	$(Q)g++ $(KERNEL_CXXFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/emulate/%.o: tests/emulate/%.cu Makefile
	@mkdir -p $(@D)
	$(Q)g++ $(KERNEL_CXXFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/emulate/%.o: tests/emulate/%.cpp Makefile
	@mkdir -p $(@D)
	$(Q)g++ $(EMULATE_CXXFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/emulate/%.o: tests/emulate/%.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) $(RACE_DEFINE) -Itests/emulate -MMD -MP -c -o $@ $<
$(BUILD)/emulate/open.o: llm/backend/open/open.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -DGEPOLAB_WITH_CUDA $(PKG_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/emulate/libllm.a: $(filter-out $(BUILD)/llm/backend/open/open.o,$(call obj,llm))
	@rm -f $@ && $(AR) qcs $@ $^
$(BUILD)/tests-emulated: $(EMULATED_TESTS) $(EMULATED) $(BUILD)/emulate/libllm.a $(BUILD)/libcore.a
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcunit $(LDLIBS) -lstdc++

# The suites of $(BUILD)/tests-emulated run first, unless SUITE asks for others: the last summary
# printed is that of all others.
RUN_EMULATED = $(if $(CXX_FOUND),$(if $(SUITE),$(filter llm: llm,$(firstword $(SUITE))),yes))
# The words of a person: TEST='a name' runs one test.
ASKED = $(if $(SUITE),'$(SUITE)') $(if $(TEST),--test '$(TEST)')

ifeq ($(SUITE),list)
check: deps
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/gepolab-tests
	@$(BUILD)/gepolab-tests --list
else
check: deps
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/gepolab $(BUILD)/gepolab-tests $(if $(RUN_EMULATED),$(BUILD)/tests-emulated)
	@$(if $(SUITE)$(TEST),,$(MAKE) --no-print-directory format-check check-arrows check-proofs check-documents check-library check-results check-guide)
	@$(if $(RUN_EMULATED),$(BUILD)/tests-emulated $(if $(TEST),|| true,) $(ASKED),echo "kernels on the host: skipped$(if $(CXX_FOUND),,: no g++ found)")
	@GEPOLAB=$(BUILD)/gepolab $(BUILD)/gepolab-tests $(ASKED)
endif

# Rooms use only what tests/arrows/rooms.txt allows, their files call each other in no circle, and a static
# function's name stands once.
.PHONY: check-arrows
check-arrows: $(BUILD)/gepolab
	@tests/arrows/check.sh $(BUILD)
	@tests/arrows/circles.sh $(BUILD)
	@tests/arrows/names.sh

# What the program does, compared with hashes under git, so that a change of structure is known to change
# nothing else: make freeze PART="policy clock" AGAINST=folder; KEEP=1 writes the hashes (tests/freeze/freeze.sh).
.PHONY: freeze
freeze: $(BUILD)/gepolab $(if $(if $(PART),$(filter library,$(PART)),yes),library)
	@KEEP=$(KEEP) AGAINST=$(AGAINST) ONLY='$(ONLY)' CC='$(CC)' tests/freeze/freeze.sh $(BUILD) $(PART)

# What libgepolab exports, and programs that use it with nothing but its header.
.PHONY: check-library
ifneq ($(SANITIZE),)
check-library:
	@echo "library: not checked in a build with sanitizers, which programs of others do not have"
else
check-library: library $(BUILD)/gepolab
	@tests/library/consumer/check.sh $(BUILD) $(CC)
endif

# The Python package: installed as a stranger would, into an environment of its own, and its tests, which bring
# PyTorch, TRL and verl, and its types; ends with the table of agreement with TRL's and verl's losses. CHECK_PYTHON_WITH: what pip
# installs for them.
CHECK_PYTHON_WITH ?= pytest mypy numpy torch pandas pyarrow tensorboard trl datasets ray tensordict omegaconf hydra-core codetiming orjson
# verl asks for a rollout engine's versions of other packages, which need a GPU: its losses do not.
CHECK_PYTHON_ALONE ?= verl
.PHONY: check-python wheel
check-python: library $(BUILD)/gepolab
	@test -x $(BUILD)/python/bin/python || $(PYTHON) -m venv $(BUILD)/python
	@$(BUILD)/python/bin/python -m pip install -q $(CHECK_PYTHON_WITH)
	@$(BUILD)/python/bin/python -m pip install -q --no-deps $(CHECK_PYTHON_ALONE)
	@$(BUILD)/python/bin/python -m pip install -q --force-reinstall --no-deps ./python
	@cd python && $(abspath $(BUILD)/python/bin/python) -m mypy --cache-dir=$(abspath $(BUILD)/mypy)
	@cd $(BUILD) && GEPOLAB=$(abspath $(BUILD)/gepolab) python/bin/python -m pytest -q -p no:cacheprovider $(abspath python/tests)
wheel: library
	@$(PYTHON) -m pip wheel -q --no-deps -w python/dist ./python && ls python/dist

# The tasks of GUIDE.md, whose lines are run as they stand there.
.PHONY: check-guide
check-guide: $(BUILD)/gepolab
	@tests/guide.sh $(BUILD)

# A sweep as an array of Slurm jobs, on a cluster of one machine that the test starts; needs root.
.PHONY: check-slurm
check-slurm: $(BUILD)/gepolab
	@$(MAKE) --no-print-directory deps PACKAGES="slurmctld slurmd slurm-client munge"
	@tests/slurm/check.sh $(BUILD)

# Every source file has a test file of the same name or a line in tests/proofs.txt.
.PHONY: check-proofs
check-proofs: $(BUILD)/gepolab-tests
	@tests/proofs.sh $(BUILD)

# Cited sections, links between documents and the files that ARCHITECTURE.md names exist.
.PHONY: check-documents
check-documents: $(BUILD)/gepolab
	@tests/documents.sh $(BUILD)

# Writes the parts of documents that come from the program's tables.
.PHONY: docs
docs: $(BUILD)/gepolab
	@for f in experiments/RECIPES.md experiments/DATA.md; do \
	   experiments/write_fields.sh $(BUILD)/gepolab $$f > $(BUILD)/$${f##*/} || exit 1; \
	   cmp -s $(BUILD)/$${f##*/} $$f || cp $(BUILD)/$${f##*/} $$f; done

# Reports of small studies as headless Chromium shows them, at 400 and 1,400 pixels.
.PHONY: check-report
check-report: $(BUILD)/gepolab
	@tests/report/check.sh $(BUILD)

# Every figure of every shipped recipe, shortened: text sizes, fonts, page widths, overlapping words.
.PHONY: check-figures
check-figures: $(BUILD)/gepolab
	@GEPOLAB=$(BUILD)/gepolab tests/figures/check.sh

# Runs the lines of pandas, DuckDB and R that stand in experiments/DATA.md on a small study and compares
# them with `gepolab analyze`. pandas and duckdb come from PyPI into $(BUILD)/data-python; R is skipped
# where there is no Rscript.
.PHONY: check-data
check-data: $(BUILD)/gepolab
	@tests/data/check.sh $(BUILD) $(PYTHON)

# Each tests/extend/NAME.patch is an addition (a ratio, a world, a figure ...): applied to a copy of
# this tree, counted, built and run.
.PHONY: check-extend
check-extend: $(BUILD)/gepolab
	@tests/extend/check.sh $(BUILD) $(EXTEND)

# Lines that the tests run, by room; files below 90 % are named.
.PHONY: coverage
coverage: deps
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=build-coverage CUDA=0 OPT="-O1 --coverage -fprofile-update=atomic" LDFLAGS=--coverage \
	   build-coverage/gepolab build-coverage/gepolab-tests
	@find build-coverage -name '*.gcda' -delete
	@GEPOLAB=build-coverage/gepolab build-coverage/gepolab-tests $(ASKED) > build-coverage/tests.log || { tail -20 build-coverage/tests.log; exit 1; }
	@tests/coverage.sh build-coverage

# One room at a time: make check-core, check-sim ... links only what that room may depend on.
define room_check
$(BUILD)/tests-$(1): $(BUILD)/tests/support/main.o $$(call obj,tests/$(1)) $$(patsubst %,$(BUILD)/tests/support/%.o,$(2)) $(3)
	$$(Q)$$(CC) $$(CFLAGS) $$(LDFLAGS) -o $$@ $$^ -lcunit $$(LDLIBS)
.PHONY: check-$(1)
check-$(1): $(BUILD)/tests-$(1)
	@$(BUILD)/tests-$(1) $$(SUITE)
endef
$(eval $(call room_check,core,core faulty_vfs policy_fixture,$(BUILD)/libcore.a))
$(eval $(call room_check,sim,sim,$(BUILD)/libsim.a $(BUILD)/libcore.a))
$(eval $(call room_check,toy,,$(BUILD)/libtoy.a $(BUILD)/libcore.a))
$(eval $(call room_check,llm,llm_backend_cases llm_backend_run llm_files llm_generate llm_model llm_tokenizer,$(BUILD)/libllm.a $(BUILD)/libcore.a))
$(eval $(call room_check,analysis,,$(BUILD)/libanalysis.a $(BUILD)/libcore.a))

# tests/fuzz/NAME.c each: runs it for FUZZ_SECONDS from the seeds in tests/fuzz/corpus-NAME. What it
# finds goes into build-fuzz/found/, its growing corpus into build-fuzz/corpus/.
FUZZ_SECONDS ?= 60
FUZZERS      := $(basename $(notdir $(wildcard tests/fuzz/*.c)))

fuzz:
	@$(MAKE) --no-print-directory deps PACKAGES="$(PACKAGES) clang libclang-rt-dev"
	@$(MAKE) --no-print-directory CC=clang BUILD=build-fuzz SANITIZE=fuzzer-no-link,address,undefined \
	   OPT=-O1 $(FUZZERS:%=build-fuzz/fuzz/%)
	@for f in $(FUZZERS); do mkdir -p build-fuzz/corpus/$$f build-fuzz/found; \
	   UBSAN_OPTIONS=halt_on_error=1 build-fuzz/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -verbosity=0 \
	     -print_final_stats=1 -artifact_prefix=build-fuzz/found/$$f- build-fuzz/corpus/$$f \
	     $$(ls -d tests/fuzz/corpus-$$f 2>/dev/null) || exit 1; done

$(BUILD)/fuzz/%: tests/fuzz/%.c $(EXP_LIB) $(call obj,library) $(LIBS)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) -fsanitize=fuzzer -o $@ $< $(EXP_LIB) $(call obj,library) $(LIBS) $(LDLIBS)

# Kills, starves and damages what $(BUILD)/gepolab does, in temporary folders: each command that
# writes is held to the table in ARCHITECTURE.md. GEPOLAB_ASAN: the same program with sanitizers, for
# damaged studies (make BUILD=build-asan SANITIZE=address,undefined OPT=-O1 build-asan/gepolab).
TORTURE_SECONDS ?= 3600
TORTURE_SEED    ?=
TORTURE_ONLY    ?=
GEPOLAB_ASAN    ?= $(wildcard build-asan/gepolab)
TORTURE_OBJ     := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/suite.c %/clock_shim.c,$(wildcard tests/torture/*.c)))

torture: $(BUILD)/gepolab $(BUILD)/gepolab-torture $(BUILD)/torture-clock.so
	@$(BUILD)/gepolab-torture --gepolab $(BUILD)/gepolab --clock $(BUILD)/torture-clock.so --seconds $(TORTURE_SECONDS) \
	   $(if $(TORTURE_SEED),--seed $(TORTURE_SEED)) $(if $(TORTURE_ONLY),--only '$(TORTURE_ONLY)') $(if $(GEPOLAB_ASAN),--asan $(GEPOLAB_ASAN))

$(BUILD)/gepolab-torture: $(TORTURE_OBJ)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lsqlite3 -lm
$(BUILD)/torture-clock.so: tests/torture/clock_shim.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -O1 -fPIC -shared $(WARN) -o $@ $<

sanitize: sanitize-address sanitize-thread
sanitize-address:
	$(MAKE) check BUILD=build-sanitize SANITIZE=address,undefined OPT=-O1
sanitize-thread:
	$(MAKE) check BUILD=build-thread SANITIZE=thread OPT=-O1

# Races between the threads of the CUDA kernels, looked for on the emulated device.
racecheck:
	@$(MAKE) --no-print-directory -j$$(nproc) build-races/tests-emulated BUILD=build-races RACES=1 CUDA=0
	build-races/tests-emulated

# Leaks and invalid accesses of one run, as told by valgrind.
valgrind: $(BUILD)/gepolab
	valgrind --quiet --leak-check=full --error-exitcode=1 $(BUILD)/gepolab run quickstart --quiet

# --- packages ------------------------------------------------------------------------------------

# Installs what is missing with apt-get (as root, or through sudo); says what to do elsewhere.
deps:
	@missing=; for p in $(PACKAGES); do \
	   dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	 if [ -n "$$missing" ]; then \
	   if ! command -v apt-get >/dev/null; then \
	     echo "gepolab needs these Debian packages (or your system's equivalents):$$missing" >&2; exit 1; fi; \
	   sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	   echo "installing:$$missing"; \
	   $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq \
	     --no-install-recommends $$missing >/dev/null; fi

# --- use -----------------------------------------------------------------------------------------

demo: deps
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/gepolab
	$(BUILD)/gepolab sweep delay_sweep -o $(BUILD)/demo.db -j $$(nproc)
	$(BUILD)/gepolab analyze $(BUILD)/demo.db
	$(BUILD)/gepolab plot $(BUILD)/demo.db -o figures/
	@echo "figures are in figures/"

# All figures, joined into paper/figures.pdf to leaf through: those of the demo's study (swept where it
# is missing), of the stored results, of the laboratory and of the clock. Six to twelve minutes on two cores, of which
# the study takes two and the recipes bias_vs_kl and sample_efficiency two more.
# FIGURES_SHOWN: of recipes with more algorithms than colours, those that are shown in colour.
FIGURES_SHOWN := reinforce,is,snis,grpo,gspo,gepo,cispo,topr
FIGURES       := $(BUILD)/figures
figures: $(BUILD)/gepolab
	@command -v pdfunite >/dev/null || { echo "make figures needs pdfunite: install poppler-utils" >&2; exit 1; }
	@test -f $(STUDY) || test $(STUDY) = $(BUILD)/demo.db || { echo "there is no $(STUDY)" >&2; exit 1; }
	@rm -rf $(FIGURES)
	@test -f $(STUDY) || $(BUILD)/gepolab sweep delay_sweep -q -o $(STUDY) -j $$(nproc)
	$(BUILD)/gepolab plot $(STUDY) -o $(FIGURES)/1_study
	$(BUILD)/gepolab plot paper/results/llm_delay_sweep_evals.tsv -o $(FIGURES)/2_transformer
	$(BUILD)/gepolab plot paper/results/llm_delay_sweep_runs.tsv -f divergence -o $(FIGURES)/2_transformer
	for s in edges_evals frontier gepo_parts causes; do \
	  $(BUILD)/gepolab plot paper/results/$$s.tsv -o $(FIGURES)/3_$$s >/dev/null 2>&1 || exit 1; done
	$(BUILD)/gepolab plot paper/results/sensitivity_ends.tsv -f sensitivity -o $(FIGURES)/3_sensitivity
	for r in bias_groups bias_staleness denominators sample_efficiency; do \
	  $(BUILD)/gepolab bias $$r -f $(FIGURES)/4_laboratory >/dev/null || exit 1; done
	for r in bias_vs_kl truncation; do \
	  $(BUILD)/gepolab bias $$r -f $(FIGURES)/4_laboratory --highlight $(FIGURES_SHOWN) >/dev/null || exit 1; done
	$(BUILD)/gepolab theory -f $(FIGURES)/4_laboratory >/dev/null
	$(BUILD)/gepolab sim heterorl_trace --timeline --densities -f $(FIGURES)/5_clock >/dev/null
	pdfunite $(FIGURES)/*/*.pdf paper/figures.pdf
	@echo "all figures are in $(FIGURES), and together in paper/figures.pdf"

# Results that are kept in paper/results, and the documents that cite them. Results whose study takes
# long may be missing: their numbers stay as they are.
RESULTS_LATER :=
CITING        := README.md paper/findings.md paper/FINDINGS-lab.md paper/FINDINGS-llm.md
STUDIES       ?= delay_sweep laboratory clock

# Runs the studies behind the documents anew and keeps their results; STUDIES=llm_delay_sweep is the
# transformer's, of some ten minutes. paper/studies.sh names all studies, and the head of each recipe says how long
# it takes: seconds (announcements, after their sweeps) to an hour. The program must be built from a clean commit.
.PHONY: studies results check-results study-paper
studies: $(BUILD)/gepolab
	@paper/studies.sh $(BUILD) $(STUDIES)

# Writes the numbers of documents from the stored results; check-results tells where they differ.
results: $(BUILD)/gepolab
	@$(BUILD)/gepolab results fill $(CITING) $(RESULTS_LATER:%=--without %)
check-results: $(BUILD)/gepolab
	@$(BUILD)/gepolab results check $(CITING) $(RESULTS_LATER:%=--without %)

# paper/gepolab.pdf from the stored results: figures, definitions of all numbers, and pdflatex.
PAPER_PACKAGES := texlive-latex-base texlive-latex-recommended texlive-fonts-recommended lmodern
paper: $(BUILD)/gepolab
	@$(MAKE) --no-print-directory deps PACKAGES="$(PACKAGES) $(PAPER_PACKAGES)"
	@paper/make.sh $(BUILD) $(RESULTS_LATER)

# The tables and figures of one study as a paper: make study-paper STUDY=study.db
study-paper: $(BUILD)/gepolab
	@$(MAKE) --no-print-directory deps PACKAGES="$(PACKAGES) $(PAPER_PACKAGES)"
	@test -f $(STUDY) || { echo "there is no $(STUDY): run make demo first, or name a study: make study-paper STUDY=file.db" >&2; exit 1; }
	@rm -rf $(BUILD)/paper && mkdir -p $(BUILD)/paper && cp paper/paper.tex $(BUILD)/paper/
	$(BUILD)/gepolab analyze $(STUDY) --format latex > $(BUILD)/paper/tables.tex
	$(BUILD)/gepolab plot $(STUDY) -o $(BUILD)/paper
	cd $(BUILD)/paper && pdflatex -interaction=batchmode -halt-on-error paper.tex >/dev/null && \
	  pdflatex -interaction=batchmode -halt-on-error paper.tex >/dev/null || { tail -20 paper.log >&2; exit 1; }
	@echo "the paper is $(BUILD)/paper/paper.pdf"

bench: $(BUILD)/gepolab
	GEPOLAB_PYTHON=$(PYTHON) $(BUILD)/gepolab bench $(BENCH)

# The transformer on a GPU, next to PyTorch. BENCH_GPU: options of `gepolab bench gpu`.
bench-gpu: $(BUILD)/gepolab
	GEPOLAB_PYTHON=$(PYTHON) $(BUILD)/gepolab bench gpu $(BENCH_GPU)

# What a machine with a GPU, but without our packages, needs: $(BUILD)/gpu-bundle/run.sh runs it there.
# The machine's own C and C++ libraries and CUDA's are used, which must be as new as those here. Its
# programs have the kernels for one kind of GPU alone (BUNDLE_SM: 90 is the H100 and the H200).
BUNDLE      := $(BUILD)/gpu-bundle
BUNDLE_SM   ?= 90
BUNDLE_MOST := 56000
BUNDLE_AT   := $(BUILD)/sm_$(BUNDLE_SM)
BUNDLE_LIBS := $(subst $(BUILD)/libllm.a,$(BUNDLE_AT)/libllm.a,$(LIBS))
$(BUNDLE_AT)/%.cu.o: NVCC_CODE = -gencode arch=compute_$(BUNDLE_SM),code=sm_$(BUNDLE_SM)
$(BUNDLE_AT)/%.cu.o: %.cu $(BUILD)/gen/cuda-flags
	$(compile_kernels)
$(BUNDLE_AT)/libllm.a: $(call obj,llm) $(CUDA_OBJ:$(BUILD)/%=$(BUNDLE_AT)/%)
	@rm -f $@ && $(AR) qcs $@ $^
$(BUNDLE_AT)/gepolab: $(call obj,experiments) $(EMBED) $(BUNDLE_LIBS)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -s -o $@ $^ $(LDLIBS)
$(BUNDLE_AT)/gepolab-tests: $(TEST_OBJ) $(EXP_LIB) $(call obj,library) $(BUNDLE_LIBS)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -s -o $@ $^ -lcunit $(LDLIBS)

ifeq ($(NVCC),)
gpu-bundle:
	@echo "make gpu-bundle needs nvcc: what is built without it has no CUDA backend" >&2; exit 1
else
gpu-bundle: $(BUNDLE_AT)/gepolab $(BUNDLE_AT)/gepolab-tests
	@rm -rf $(BUNDLE) && mkdir -p $(BUNDLE)/lib $(BUNDLE)/experiments/bench $(BUNDLE)/recipes
	@cp $^ $(BUNDLE)/
	@ldd $^ | awk '$$2 == "=>" && $$3 ~ /^\// {print $$3}' | sort -u | \
	   grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so' | xargs -I{} cp -L {} $(BUNDLE)/lib/
	@tar -C $(BUNDLE) -czf $(BUNDLE)/lib.tar.gz lib && rm -r $(BUNDLE)/lib
	@cp experiments/bench/gpu.py experiments/bench/serve.py $(BUNDLE)/experiments/bench/
	@cp experiments/recipes/llm_delay_sweep.yaml experiments/recipes/llm_quick.yaml $(BUNDLE)/recipes/
	@cp experiments/bench/gpu_bundle.sh $(BUNDLE)/run.sh
	@size=$$(du -sk $(BUNDLE) | cut -f1); echo "$(BUNDLE): $$size KiB, kernels for sm_$(BUNDLE_SM)"; \
	   [ $$size -le $(BUNDLE_MOST) ] || { du -ak $(BUNDLE) | sort -rn | sed -n 2,6p >&2; rm -r $(BUNDLE); \
	     echo "make gpu-bundle: $$size KiB are more than $(BUNDLE_MOST): what is largest is above; leave something out" >&2; exit 1; }
endif

# The manual page and what shells complete with come from the tables that --help prints.
$(BUILD)/gepolab.1: $(BUILD)/gepolab
	$(Q)$< help --man > $@
$(BUILD)/completion.%: $(BUILD)/gepolab
	$(Q)$< help --completion $* > $@

# One line for each installed file: its mode, what it is made from, where it goes.
define INSTALLED
755 $(BUILD)/gepolab $(PREFIX)/bin/gepolab
644 $(BUILD)/gepolab.1 $(PREFIX)/share/man/man1/gepolab.1
644 $(BUILD)/completion.bash $(PREFIX)/share/bash-completion/completions/gepolab
644 $(BUILD)/completion.zsh $(ZSHDIR)/_gepolab
644 experiments/slurm/sweep.sbatch $(PREFIX)/share/doc/gepolab/examples/sweep.sbatch
644 library/gepolab.h $(PREFIX)/include/gepolab.h
755 $(SHARED) $(LIBDIR)/$(SONAME)
644 $(STATIC) $(LIBDIR)/libgepolab.a
644 $(BUILD)/gepolab.pc $(LIBDIR)/pkgconfig/gepolab.pc
endef
export INSTALLED

.PHONY: installable
installable: $(BUILD)/gepolab $(BUILD)/gepolab.1 $(BUILD)/completion.bash $(BUILD)/completion.zsh library

# The loader is told of the library where it goes into the system itself.
install: installable
	@echo "$$INSTALLED" | while read -r mode from to; do install -D -m $$mode "$$from" "$(DESTDIR)$$to" || exit 1; echo "$(DESTDIR)$$to"; done
	@ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libgepolab.so
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig || true; fi

uninstall:
	@echo "$$INSTALLED" | while read -r mode from to; do rm -f "$(DESTDIR)$$to"; done
	@rm -f $(DESTDIR)$(LIBDIR)/libgepolab.so

# Debian packages in $(BUILD)/deb: gepolab, libgepolab0, libgepolab-dev, python3-gepolab.
# Built from the last commit, without CUDA, whose toolkit Debian's main section does not have.
.PHONY: deb check-deb
deb:
	@$(MAKE) --no-print-directory deps PACKAGES="$(PACKAGES) dpkg-dev debhelper fakeroot dh-python python3 openmpi-bin libopenmpi-dev"
	@experiments/packaging/deb.sh $(BUILD)
# Installs those packages into an empty Debian system and uses them there; needs root.
check-deb:
	@$(MAKE) --no-print-directory deps PACKAGES="debootstrap lintian"
	@tests/packaging/deb.sh $(BUILD)

# The layout of .clang-format as clang-format 14 has it, which other versions change.
FORMATTED     = $(shell find $(ROOMS) tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh')
CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14 clang-format 2>/dev/null))
format:
	$(CLANG_FORMAT) -i $(FORMATTED)
format-check:
	@if [ -z "$(CLANG_FORMAT)" ]; then echo "format: not checked: no clang-format found (apt-get install clang-format)"; \
	 elif ! $(CLANG_FORMAT) --version | grep -q 'version 14\.'; then echo "format: not checked: clang-format 14 is needed, $$($(CLANG_FORMAT) --version) found"; \
	 else $(CLANG_FORMAT) --dry-run -Werror $(FORMATTED) && echo "format: $(words $(FORMATTED)) files as clang-format writes them"; fi

clean:
	rm -rf $(BUILD) build-asan build-sanitize build-thread build-races build-fuzz build-coverage build-extend

-include $(CUDA_OBJ:.o=.d) $(CUDA_OBJ:$(BUILD)/%.o=$(BUNDLE_AT)/%.d) $(EMULATED:.o=.d)
-include $(SRC:%.c=$(BUILD)/%.d) $(TEST_OBJ:.o=.d)
