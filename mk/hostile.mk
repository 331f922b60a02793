# Hostile inputs and circumstances: fuzzing, torture, sanitizers, races, valgrind.

# tests/fuzz/NAME.c each: runs it for FUZZ_SECONDS, one a processor at a time, from the seeds in tests/fuzz/corpus-NAME. What it
# finds goes into build-fuzz/found/, its growing corpus into build-fuzz/corpus/.
FUZZ_SECONDS ?= 60
FUZZERS      := $(basename $(notdir $(wildcard tests/fuzz/*.c)))

fuzz:
	@$(MAKE) --no-print-directory deps PACKAGES="$(PACKAGES) clang libclang-rt-dev"
	@$(MAKE) --no-print-directory -j$$(nproc) -O CC=clang BUILD=build-fuzz SANITIZE=fuzzer-no-link,address,undefined \
	   OPT=-O1 $(FUZZERS:%=fuzz-%)
fuzz-%: $(BUILD)/fuzz/%
	@mkdir -p build-fuzz/corpus/$* build-fuzz/found
	@UBSAN_OPTIONS=halt_on_error=1 $< -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -verbosity=0 -print_final_stats=1 \
	   -artifact_prefix=build-fuzz/found/$*- build-fuzz/corpus/$* $(wildcard tests/fuzz/corpus-$*)

.PRECIOUS: $(BUILD)/fuzz/%
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
$(BUILD)/torture-clock.so: tests/torture/clock_shim.c $(FLAGS)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -O1 -fPIC -shared $(WARN) -o $@ $<

sanitize: sanitize-address sanitize-thread
sanitize-address:
	LSAN_OPTIONS=suppressions=$(CURDIR)/tests/leaks.txt $(MAKE) check BUILD=build-sanitize SANITIZE=address,undefined OPT=-O1
sanitize-thread:
	$(MAKE) check BUILD=build-thread SANITIZE=thread OPT=-O1

# Races between the threads of the CUDA kernels, looked for on the emulated device.
racecheck:
	@$(MAKE) --no-print-directory -j$$(nproc) build-races/tests-emulated BUILD=build-races RACES=1 CUDA=0
	build-races/tests-emulated

# Leaks and invalid accesses, as valgrind finds them: of one run, and of the suites whose names begin with the words
# in VALGRIND_SUITES, between semicolons.
VALGRIND_SUITES ?= core: arenas;core: json;core: CSV;core: config;toy: worlds;lab: decision
.PHONY: valgrind-tests
valgrind: $(BUILD)/gepolab
	@command -v valgrind > /dev/null || $(MAKE) --no-print-directory deps PACKAGES=valgrind
	valgrind --quiet --leak-check=full --error-exitcode=1 $(BUILD)/gepolab run quickstart --quiet
valgrind-tests: $(BUILD)/gepolab-tests $(BUILD)/gepolab
	@echo '$(VALGRIND_SUITES)' | tr ';' '\n' | while read -r suite; do \
	   GEPOLAB=$(BUILD)/gepolab valgrind --quiet --leak-check=full --error-exitcode=1 $(BUILD)/gepolab-tests "$$suite" || exit 1; done
