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
DEBUG    ?= -g
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
CPPFLAGS += -I. -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -I$(BUILD)
CFLAGS   += -std=c11 $(OPT) $(DEBUG) -ffp-contract=off $(WARN) $(if $(ARCH),-march=$(ARCH)) \
            $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
LDFLAGS  += $(if $(SANITIZE),-fsanitize=$(SANITIZE))
VERSION  := $(shell cat VERSION)

include mk/packages.mk
include mk/optional.mk

ROOMS    := core sim toy llm analysis library experiments
# Every C file below some folders, and the objects made of them.
sources   = $(sort $(shell find $(1) -name '*.c'))
obj       = $(foreach s,$(call sources,$(1)),$(if $(filter $(CPU_TEMPLATE),$(s)),$(CPU_OBJ),$(s:%.c=$(BUILD)/%.o)))
SRC      := $(call sources,$(ROOMS))
TEST_OPT ?= -O1
# The chart library of report.html: embedded under its base name where Debian's package is installed, else left out.
CHART_JS := $(wildcard /usr/share/javascript/chart.js/chart.min.js)
RESOURCES := $(wildcard plots/*.gp) $(wildcard experiments/recipes/*.yaml) \
             $(wildcard experiments/clusters/*.yaml) experiments/report/report.css experiments/report/report.js \
             $(wildcard paper/results/announcements_edges.tsv) \
             experiments/predictions/compared.tsv \
             $(wildcard experiments/cli/completion.*sh) $(CHART_JS)
EMBED    := $(BUILD)/gen/resources.o $(BUILD)/gen/commit.o
LIBS     := $(foreach r,analysis sim toy llm core,$(BUILD)/lib$(r).a)
# What libgepolab is made of.
SHARED_ROOMS := analysis sim toy core
LDLIBS    = $(PKG_LIBS) $(ARB_LIBS) $(MPI_LIBS) $(CUDA_LIBS) -lm -lpthread

.DEFAULT_GOAL := all
.PHONY: all check demo figures paper bench bench-gpu gpu-bundle deps install uninstall sanitize sanitize-address sanitize-thread racecheck valgrind fuzz torture clean format format-check help force
all: $(BUILD)/gepolab

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

# Row loops of llm/ are written to be vectorised; the CPU backend is compiled once for every machine
# and once for each form of wider instructions, which it chooses when it runs. Loops that the
# compiler vectorises have 32 bytes with AVX-512, too, so that their sums have AVX2's bits.
MACHINE     := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
LLM_CFLAGS  := -fopenmp-simd -fno-math-errno -fno-trapping-math -Wno-pass-failed
AVX2_CFLAGS := $(if $(filter x86_64,$(MACHINE)),-mavx2 -mfma)
AVX512_CFLAGS := $(if $(AVX2_CFLAGS),$(AVX2_CFLAGS) -mavx512f -mavx512vl -mavx512dq -mavx512bw -mprefer-vector-width=256)
CPU_TEMPLATE := llm/backend/cpu/template.c
CPU_FORMS   := f32 f64 $(foreach f,$(if $(AVX2_CFLAGS),avx2 avx512) $(if $(filter aarch64 arm64,$(MACHINE)),neon),f32_$(f) f64_$(f))
CPU_OBJ     := $(CPU_FORMS:%=$(BUILD)/llm/backend/cpu/template_%.o)

# $(call stamp,FILE,TEXT): a file of $(BUILD)/gen with that text, touched when the text is another one. What depends
# on flags or on a list of files depends on such a file, and not on the Makefile.
define stamp
$(BUILD)/gen/$(1): force
	@mkdir -p $$(@D); echo '$(subst ',,$(subst ",,$(2)))' | cmp -s - $$@ || echo '$(subst ',,$(subst ",,$(2)))' > $$@
endef
FLAGS := $(BUILD)/gen/flags
$(eval $(call stamp,flags,$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(MPI_CFLAGS) $(CFLAGS) $(TEST_OPT) $(LLM_CFLAGS) $(AVX512_CFLAGS)))
$(eval $(call stamp,resources,$(RESOURCES)))

include mk/cuda.mk

# --- build ---------------------------------------------------------------------------------------

# Code of the shared library: in any place of memory, and only what library/gepolab.h marks is seen.
$(foreach r,library $(SHARED_ROOMS),$(BUILD)/$(r)/%.o): CFLAGS += -fPIC -fvisibility=hidden
$(BUILD)/llm/%.o $(BUILD)/tests/llm/%.o $(BUILD)/tests/support/llm_%.o: CFLAGS += $(LLM_CFLAGS)
$(CPU_OBJ): CFLAGS += -ffp-contract=fast
define compile
@mkdir -p $(@D)
$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(if $(filter experiments/%,$<),$(MPI_CFLAGS)) $(CFLAGS) -MMD -MP -c -o $@ $<
endef
# A test is compiled once and run once: what takes its time is in the rooms.
$(BUILD)/tests/%.o: OPT = $(TEST_OPT)
$(BUILD)/tests/%.o: DEBUG = -g1
$(BUILD)/%.o: %.c $(FLAGS) | $(BUILD)/gen/version.h
	$(compile)
# Without --coverage: clang resets an object's counters in every process, with that object's instructions.
$(filter %_avx512.o,$(CPU_OBJ)): override OPT := $(filter-out --coverage,$(OPT))
$(CPU_OBJ): $(BUILD)/llm/backend/cpu/template_%.o: $(CPU_TEMPLATE) $(FLAGS) | $(BUILD)/gen/version.h
	$(compile) $(if $(filter %_avx2,$*),$(AVX2_CFLAGS)) $(if $(filter %_avx512,$*),$(AVX512_CFLAGS)) $(if $(filter %_neon,$*),-DFORM_NEON) \
	  -DCPU_OPS=cpu_ops_$* -DIS_DOUBLE=$(if $(filter f64%,$*),1,0)

define room
$(BUILD)/lib$(1).a: $$(call obj,$(1)) $$(if $$(filter llm,$(1)),$$(CUDA_OBJ))
	@rm -f $$@ && $$(AR) qcs $$@ $$^
endef
$(foreach r,core sim toy llm analysis,$(eval $(call room,$(r))))

# Recipes and plot scripts travel inside the binary: `gepolab run quickstart` works from anywhere.
$(BUILD)/gen/resources.S: $(RESOURCES) $(BUILD)/gen/resources
	@mkdir -p $(@D)
	@{ echo '.section .rodata'; i=0; for f in $(RESOURCES); do \
	     case $$f in /*) n=$${f##*/};; *) n=$$f;; esac; echo "name$$i: .asciz \"$$n\""; echo "data$$i: .incbin \"$$f\""; echo "end$$i: .byte 0"; \
	     i=$$((i+1)); done; \
	   echo '.section .data.rel.ro,"aw"'; echo '.balign 8'; echo '.globl resource_table'; \
	   echo 'resource_table:'; i=0; for f in $(RESOURCES); do \
	     echo ".quad name$$i, data$$i, end$$i - data$$i"; i=$$((i+1)); done; \
	   echo '.quad 0, 0, 0'; echo '.section .note.GNU-stack,"",%progbits'; } > $@
$(BUILD)/gen/resources.o: $(BUILD)/gen/resources.S
	$(Q)$(CC) -c -o $@ $<

# The version, for the files that include it: <gen/version.h>.
$(BUILD)/gen/version.h: VERSION
	@mkdir -p $(@D) && echo '#define GEPOLAB_VERSION "$(VERSION)"' > $@

# The commit that the program is built from, which runs keep: asked at every build, compiled when it
# is another one.
$(BUILD)/gen/commit.c: force
	@experiments/write_commit.sh $@ $(NVCC)
$(BUILD)/gen/commit.o: $(BUILD)/gen/commit.c
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<

# A table that an enumeration indexes and that has no line for one of its values does not build.
TABLES := $(foreach kind,h cuh c cu,$(shell find $(ROOMS) -name '*.$(kind)'))
$(BUILD)/tables: tests/arrows/tables.awk $(TABLES)
	@mkdir -p $(@D) && awk -f $^ && touch $@

$(BUILD)/gepolab: $(call obj,experiments) $(EMBED) $(LIBS) | $(BUILD)/tables
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# --- use -----------------------------------------------------------------------------------------

demo: deps
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/gepolab
	$(BUILD)/gepolab sweep delay_sweep -o $(BUILD)/demo.db -j $$(nproc)
	$(BUILD)/gepolab analyze $(BUILD)/demo.db
	$(BUILD)/gepolab plot $(BUILD)/demo.db -o figures/
	@echo "figures are in figures/"

# The layout of .clang-format as clang-format 14 has it, which other versions change.
FORMATTED     = $(shell find $(ROOMS) tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh')
CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14 clang-format 2>/dev/null))
format:
	$(CLANG_FORMAT) -i $(FORMATTED)
format-check:
	@if [ -z "$(CLANG_FORMAT)" ]; then echo "skipped: 1 of 1: format: no clang-format found (apt-get install clang-format)"; \
	 elif ! $(CLANG_FORMAT) --version | grep -q 'version 14\.'; then echo "skipped: 1 of 1: format: clang-format 14 is needed, $$($(CLANG_FORMAT) --version) found"; \
	 else $(CLANG_FORMAT) --dry-run -Werror $(FORMATTED) && echo "format: $(words $(FORMATTED)) files as clang-format writes them"; fi

clean:
	rm -rf $(BUILD) build-asan build-sanitize build-thread build-races build-fuzz build-coverage build-extend

include $(foreach f,library tests checks hostile results wasm neon site install bundle verify,mk/$(f).mk)
-include $(SRC:%.c=$(BUILD)/%.d) $(CPU_OBJ:.o=.d)
