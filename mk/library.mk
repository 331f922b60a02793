# libgepolab: the shared and the static library, and what pkg-config says of them.

# Programs find it by its interface's major number; what it exports is in library/symbols.txt.
SONAME    := libgepolab.so.0
SHARED    := $(BUILD)/$(SONAME)
STATIC    := $(BUILD)/libgepolab.a
SHARED_LIBS = $(filter-out -lpcre2-8,$(PKG_LIBS)) -lm -lpthread
OBJCOPY   ?= objcopy
.PHONY: library
library: $(SHARED) $(STATIC) $(BUILD)/gepolab.pc

$(SHARED): $(call obj,library) $(foreach r,$(SHARED_ROOMS),$(BUILD)/lib$(r).a) library/export.map
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=library/export.map \
	   -Wl,--as-needed $(if $(SANITIZE),,-Wl,-z,defs) -o $@ $(filter %.o %.a,$^) $(SHARED_LIBS)
	@ln -sf $(SONAME) $(BUILD)/libgepolab.so
# One object with all that the public functions need, whose other names are its own.
$(STATIC): $(call obj,library) $(foreach r,$(SHARED_ROOMS),$(BUILD)/lib$(r).a)
	@mkdir -p $(BUILD)/gen && $(LD) -r -o $(BUILD)/gen/libgepolab.o $^
	@$(OBJCOPY) --wildcard --keep-global-symbol='gepolab_*' $(BUILD)/gen/libgepolab.o
	@rm -f $@ && $(AR) qcs $@ $(BUILD)/gen/libgepolab.o
$(BUILD)/gepolab.pc: library/gepolab.pc.in VERSION $(FLAGS)
	@sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|; s|@VERSION@|$(VERSION)|; s|@PRIVATE@|$(SHARED_LIBS)|' $< > $@
