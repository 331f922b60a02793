# The programs of the tests, and make check.

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
                    experiments/base/args.c experiments/base/memory.c experiments/base/program.c \
                    tests/support/main.c tests/support/processes.c $(wildcard tests/llm/backend/cuda/*.c) \
                    tests/support/llm_backend_cases.c tests/support/llm_backend_run.c tests/support/llm_model.c tests/support/files.c)
EMULATE_CXXFLAGS = -x c++ -std=c++17 -DGEPOLAB_EMULATE -DGEPOLAB_CUDA_LIB='"$(BUILD)/emulate"' -Itests/emulate -Itests/emulate/nccl -I. -O1 -g1 -Wall -Wextra -Wshadow -Werror=switch-enum -Wno-unknown-pragmas \
                    $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=undefined) $(RACE_DEFINE)
# Kernels that tell tests/emulate/race.cpp of every load and store, each as wide as it is written.
RACE_DEFINE := $(if $(RACES),-DGEPOLAB_EMULATE_RACES)
KERNEL_CXXFLAGS = $(EMULATE_CXXFLAGS) $(if $(RACES),-fsanitize=thread -fno-tree-sra -fno-ipa-sra)

$(BUILD)/emulate/cuda/%.o: llm/backend/cuda/%.cu $(FLAGS) | $(BUILD)/gen/version.h
	@mkdir -p $(@D)
	$(Q)g++ $(KERNEL_CXXFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/emulate/%.o: tests/emulate/%.cu $(FLAGS) | $(BUILD)/gen/version.h
	@mkdir -p $(@D)
	$(Q)g++ $(KERNEL_CXXFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/emulate/%.o: tests/emulate/%.cpp $(FLAGS) | $(BUILD)/gen/version.h
	@mkdir -p $(@D)
	$(Q)g++ $(EMULATE_CXXFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/emulate/%.o: tests/emulate/%.c $(FLAGS) | $(BUILD)/gen/version.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) $(RACE_DEFINE) -Itests/emulate -Itests/emulate/nccl -MMD -MP -c -o $@ $<
# In the place of NCCL, opened at run time like it, wherever the real one is.
$(BUILD)/emulate/libnccl.so.2: tests/emulate/nccl/nccl.cpp tests/emulate/nccl/nccl.h $(FLAGS)
	@mkdir -p $(@D)
	$(Q)g++ $(EMULATE_CXXFLAGS) -fPIC -shared -o $@ $<
$(BUILD)/emulate/open.o: llm/backend/open/open.c $(FLAGS) | $(BUILD)/gen/version.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -DGEPOLAB_WITH_CUDA $(PKG_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/emulate/libllm.a: $(filter-out $(BUILD)/llm/backend/open/open.o,$(call obj,llm))
	@rm -f $@ && $(AR) qcs $@ $^
# tests/support/main.c refers to tables of fields weakly, which alone takes no object from an archive.
FIELDS_OF := llm llm_model llm_task rl policy
$(BUILD)/tests-emulated: $(EMULATED_TESTS) $(EMBED) $(EMULATED) $(BUILD)/emulate/libllm.a $(BUILD)/libcore.a | $(BUILD)/emulate/libnccl.so.2
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/emulate',--export-dynamic-symbol=emulate_stream_busy \
	  -o $@ $(FIELDS_OF:%=-Wl,-u,%_fields) $^ -lcunit $(LDLIBS) -lstdc++

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
	@$(if $(SUITE)$(TEST),,$(MAKE) --no-print-directory format-check check-arrows check-proofs check-documents check-library check-results check-guide check-verify)
	@$(if $(RUN_EMULATED),$(BUILD)/tests-emulated $(if $(TEST),|| true,) $(ASKED),echo "$(if $(CXX_FOUND),kernels on the host: not asked for,skipped: 1 of 1: kernels on the host$(if $(filter 0,$(EMULATE)),,: no g++ of these sanitizers))")
	@GEPOLAB=$(BUILD)/gepolab $(BUILD)/gepolab-tests $(ASKED)
endif

# One room at a time: make check-core, check-sim ... links only what that room may depend on, as a whole (for the
# tables of fields).
$(BUILD)/libtests.a: $(filter-out %/main.o,$(call obj,tests/support))
	@rm -f $@ && $(AR) qcs $@ $^
define room_check
$(BUILD)/tests-$(1): $(BUILD)/tests/support/main.o $$(call obj,tests/$(1)) $(BUILD)/libtests.a $(patsubst %,$(BUILD)/lib%.a,$(1) $(2))
	$$(Q)$$(CC) $$(CFLAGS) $$(LDFLAGS) -o $$@ $$(filter %.o %/libtests.a,$$^) -Wl,--whole-archive $$(filter-out %.o %/libtests.a,$$^) -Wl,--no-whole-archive -lcunit $$(LDLIBS)
.PHONY: check-$(1)
check-$(1): $(BUILD)/tests-$(1)
	@GEPOLAB=$(BUILD)/gepolab $(BUILD)/tests-$(1) $$(SUITE)
endef
# Three suites of core/rl train a small world; those of core/config and of exports read recipes of other rooms.
$(eval $(call room_check,core,toy sim llm core))
$(eval $(call room_check,analysis,sim core))
$(foreach r,sim toy llm,$(eval $(call room_check,$(r),core)))

-include $(TEST_OBJ:.o=.d) $(EMULATED:.o=.d)
