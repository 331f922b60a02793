# Checks of one thing each: layout, behaviour, documents, packages of others.

# Rooms use only what tests/arrows/rooms.txt allows, their files call each other in no circle, and a static
# function's name stands once.
.PHONY: check-arrows
check-arrows: $(BUILD)/gepolab
	@tests/arrows/check.sh $(BUILD)
	@tests/arrows/circles.sh $(BUILD)
	@tests/arrows/names.sh

# The CUDA kernels as compiled for sm_80 and sm_90a: registers and local memory, their launches on the emulated device, machine code,
# and what clang says of the source. Needs nvcc and no device.
.PHONY: check-kernels
check-kernels: $(BUILD)/tests-emulated
	@tests/kernels/registers.sh $(BUILD)/kernels 80 90a
	@tests/kernels/launches.sh $(BUILD)
	@tests/kernels/machine_code.sh $(BUILD) $(PYTHON)
	@tests/kernels/clang.sh $(BUILD)/kernels

# What the program does, compared with hashes under git, so that a change of structure is known to change
# nothing else: make freeze PART="policy clock" AGAINST=folder; KEEP=1 writes the hashes (tests/freeze/freeze.sh).
.PHONY: freeze
freeze: $(BUILD)/gepolab $(if $(if $(PART),$(filter library,$(PART)),yes),library)
	@KEEP=$(KEEP) AGAINST=$(AGAINST) ONLY='$(ONLY)' CC='$(CC)' tests/freeze/freeze.sh $(BUILD) $(PART)

# What libgepolab exports, and programs that use it with nothing but its header.
.PHONY: check-library
ifneq ($(SANITIZE),)
check-library:
	@echo "skipped: 1 of 1: libgepolab in programs of others, which have no sanitizers"
else
check-library: library $(BUILD)/gepolab
	@tests/library/consumer/check.sh $(BUILD) $(CC)
endif

# The Python package: installed as a stranger would, into an environment of its own, and its tests, which bring
# PyTorch, TRL and verl, and its types; ends with the table of agreement with TRL's and verl's losses. CHECK_PYTHON_WITH: what pip
# installs for them.
CHECK_PYTHON_WITH ?= pytest mypy numpy torch pandas pyarrow tensorboard trl datasets ray tensordict omegaconf hydra-core codetiming orjson nbclient ipykernel
# verl asks for a rollout engine's versions of other packages, which need a GPU: its losses do not.
CHECK_PYTHON_ALONE ?= verl
.PHONY: check-python wheel check-wheel sdist check-sdist
check-python: library $(BUILD)/gepolab
	@test -x $(BUILD)/python/bin/python || $(PYTHON) -m venv $(BUILD)/python
	@$(BUILD)/python/bin/python -m pip install -q $(CHECK_PYTHON_WITH)
	@$(BUILD)/python/bin/python -m pip install -q --no-deps $(CHECK_PYTHON_ALONE)
	@$(BUILD)/python/bin/python -m pip install -q --force-reinstall --no-deps ./python
	@cd python && $(abspath $(BUILD)/python/bin/python) -m mypy --cache-dir=$(abspath $(BUILD)/mypy)
	@cd $(BUILD) && GEPOLAB=$(abspath $(BUILD)/gepolab) python/bin/python -m pytest -q -p no:cacheprovider $(abspath python/tests)
# A wheel with the program, the library and all that they link; installed and used in empty systems by check-wheel (needs root).
# Built without CUDA and MPI in a folder of its own: their libraries stay out of it.
wheel:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/wheel CUDA=0 MPICC= DEBUG=-g0 library $(BUILD)/wheel/gepolab
	@python/wheel.sh $(BUILD)/wheel $(PYTHON) python/dist
# The source package, from the last commit; check-sdist builds and uses it.
sdist:
	@python/sdist.sh $(PYTHON) python/dist
check-sdist: sdist
	@rm -rf $(BUILD)/sdist-env && $(PYTHON) -m venv $(BUILD)/sdist-env
	@$(BUILD)/sdist-env/bin/python -m pip install -q python/dist/gepolab-*.tar.gz
	@cd $(BUILD) && sdist-env/bin/python -c 'import gepolab; print("sdist: gepolab", gepolab.__version__, "built and imported,", len(gepolab.algorithms()), "algorithms")'
check-wheel: wheel
	@$(MAKE) --no-print-directory deps PACKAGES="debootstrap"
	@tests/packaging/wheel.sh python/dist

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
	@for f in experiments/RECIPES.md experiments/DATA.md paper/staleness.md; do \
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

# The JSON Schema of recipes (gepolab fields --schema) in the validator of PyPI's check-jsonschema,
# which is installed into $(BUILD)/schema-python.
.PHONY: check-schema
check-schema: $(BUILD)/gepolab
	@tests/schema.sh $(BUILD) $(PYTHON)

# Each tests/extend/NAME.patch is an addition (a ratio, a world, a figure ...): applied to a copy of
# this tree, counted, built and run.
.PHONY: check-extend
check-extend: $(BUILD)/gepolab
	@tests/extend/check.sh $(BUILD) $(EXTEND)

# Lines that the tests run, by room; files below 90 % are named. Works with CC=clang, too.
.PHONY: coverage
coverage: deps
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=build-coverage CUDA=0 OPT="-O1 --coverage -fprofile-update=atomic" LDFLAGS=--coverage \
	   build-coverage/gepolab build-coverage/gepolab-tests
	@find build-coverage -name '*.gcda' -delete
	@GEPOLAB=build-coverage/gepolab build-coverage/gepolab-tests $(ASKED) > build-coverage/tests.log || { tail -20 build-coverage/tests.log; exit 1; }
	@grep -e '^skipped: ' -e '^ *tests ' build-coverage/tests.log
	@GCOV='$(if $(findstring clang,$(CC)),llvm-cov gcov,gcov)' tests/coverage.sh build-coverage
