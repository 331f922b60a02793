# gepolab in a browser: the command compiled to WebAssembly, and what the site's page needs of it.

# Emscripten comes from Debian; the libraries are built from Debian's source packages, once.
EMCC          := $(shell command -v emcc 2>/dev/null)
WASM          := $(BUILD)/wasm
WASM_PACKAGES := emscripten tcl
WASM_LIBS     := $(foreach l,gsl sqlite3 yaml cjson pcre2 utf8proc zlib zstd,$(WASM)/libraries/lib/$(l).a)
# The commands of NOT_IN_BROWSER in experiments/cli/commands.c need more than these files.
WASM_SRC      := $(call sources,core sim toy analysis $(addprefix experiments/,base clock lab plan policy recipe tokens)) \
                 experiments/report/html.c experiments/sweep/grid.c site/browser/no_llm.c llm/learner/fields.c llm/model/fields.c \
                 $(addprefix experiments/cli/,commands.c common.c main.c $(foreach c,algorithms diagnose fields lab list policy published sim whatif,cmd_$(c).c))
WASM_OBJ      := $(WASM_SRC:%.c=$(WASM)/obj/%.o) $(WASM)/obj/gen/resources.o $(WASM)/obj/gen/commit.o
# emcc's own flags for clang, without the wrapper, which takes longer than clang does. Random123 asks for a processor
# that it was tested on, and takes nothing of it for Philox: RISC-V is one of which no header here knows more.
WASM_CC        = $(eval WASM_CC := clang-14 $(shell emcc --cflags))$(WASM_CC)
WASM_CFLAGS   := -std=c11 -O2 -ffp-contract=off -Wall -Wextra -Wno-unused-const-variable -Wno-missing-field-initializers -D__riscv -I$(WASM)/libraries/include
WASM_LDFLAGS  := -O2 -sMODULARIZE -sEXPORT_NAME=gepolab_module -sINVOKE_RUN=0 -sEXIT_RUNTIME=0 -sALLOW_MEMORY_GROWTH -sFORCE_FILESYSTEM \
                 -sTOTAL_STACK=2MB -sENVIRONMENT=worker,node -sEXPORTED_RUNTIME_METHODS=callMain,FS
# Where Node is not Debian's, the linker does not find Debian's acorn by itself.
EMSCRIPTEN    := NODE_PATH=/usr/share/nodejs

.PHONY: wasm check-wasm
wasm:
	@$(MAKE) --no-print-directory deps PACKAGES="$(PACKAGES) $(WASM_PACKAGES)"
	@$(MAKE) --no-print-directory $(WASM)/page/gepolab.html
	@echo "the page is $(WASM)/page/gepolab.html ($$(($$(wc -c < $(WASM)/page/gepolab.html) / 1024)) KiB): it needs nothing beside it, and \`make site\` includes it"

# The module beside the native command on a battery of cases, then the page in a browser, with the time of its answers.
check-wasm: $(BUILD)/gepolab
	@if [ -z "$(EMCC)" ] && [ ! -e $(WASM)/gepolab.wasm ]; then echo "skipped: 1 of 1: wasm: no emscripten found (make wasm installs it)"; \
	 else $(MAKE) --no-print-directory $(WASM)/page/gepolab.html && node tests/site/wasm.mjs $(BUILD)/gepolab $(WASM) && \
	   python3 tests/site/browser.py $(BUILD)/gepolab $(WASM)/page; fi

$(WASM)/libraries/done: site/browser/libraries.sh
	@echo "building the libraries of the WebAssembly module (some minutes, once)"
	@site/browser/libraries.sh $(WASM)/libraries
	@touch $@
$(WASM_OBJ): | $(WASM)/libraries/done
$(eval $(call stamp,wasm-flags,$(WASM_CFLAGS) $(CPPFLAGS)))
$(WASM)/obj/%.o: %.c $(BUILD)/gen/wasm-flags | $(BUILD)/gen/version.h
	@mkdir -p $(@D)
	$(Q)$(WASM_CC) $(CPPFLAGS) $(WASM_CFLAGS) -MMD -MP -c -o $@ $<
$(WASM)/obj/gen/commit.o: $(BUILD)/gen/commit.c
	@mkdir -p $(@D)
	$(Q)$(WASM_CC) $(WASM_CFLAGS) -c -o $@ $<
# The assembler of the native build's table has no WebAssembly: the same table as C.
$(WASM)/resources.c: $(RESOURCES) $(BUILD)/gen/resources
	@mkdir -p $(@D)
	@{ i=0; for f in $(RESOURCES); do echo "static const unsigned char data$$i[] = {"; od -An -v -tu1 $$f | sed 's/  */,/g; s/^,//; s/$$/,/'; \
	     echo "0};"; i=$$((i+1)); done; \
	   echo '#include "experiments/base/program.h"'; echo 'const resource resource_table[] = {'; \
	   i=0; for f in $(RESOURCES); do echo "{\"$$f\", (const char *)data$$i, sizeof data$$i - 1},"; i=$$((i+1)); done; echo '{0}};'; } > $@
$(WASM)/obj/gen/resources.o: $(WASM)/resources.c
	@mkdir -p $(@D)
	$(Q)$(WASM_CC) $(CPPFLAGS) $(WASM_CFLAGS) -c -o $@ $<
$(WASM)/gepolab.js $(WASM)/gepolab.wasm &: $(WASM_OBJ) $(WASM)/libraries/done
	$(Q)$(EMSCRIPTEN) emcc $(WASM_LDFLAGS) -o $(WASM)/gepolab.js $(WASM_OBJ) $(WASM_LIBS)
$(WASM)/page/gepolab.html: $(WASM)/gepolab.wasm $(wildcard site/browser/*.*) $(wildcard paper/results/frontier*.tsv)
	@python3 site/browser/bundle.py site/browser $(WASM) paper/results $(@D)
-include $(WASM_SRC:%.c=$(WASM)/obj/%.d)
