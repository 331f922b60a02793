# The program, libgepolab and the tests for aarch64, cross-compiled and run by qemu.

# Debian's libraries for aarch64 are unpacked into $(NEON)/sysroot, once; the system keeps its own.
NEON          := $(BUILD)/neon
NEON_SYSROOT      = $(abspath $(NEON))/sysroot
NEON_LIBS      = $(NEON_SYSROOT)/usr/lib/aarch64-linux-gnu
NEON_PACKAGES  = libcunit1-dev $(filter-out gcc pkg-config gnuplot-nox fonts-%,$(PACKAGES))
NEON_MAKE      = PKG_CONFIG_SYSROOT_DIR=$(NEON_SYSROOT) PKG_CONFIG_LIBDIR=$(NEON_LIBS)/pkgconfig \
                 $(MAKE) --no-print-directory BUILD=$(NEON) CC='aarch64-linux-gnu-gcc --sysroot=$(NEON_SYSROOT)' $(foreach t,AR LD OBJCOPY,$(t)=aarch64-linux-gnu-$(shell echo $(t) | tr A-Z a-z)) \
                 CUDA=0 MPICC= OPT=$(NEON_OPT) DEBUG=-g0
NEON_OPT      ?= -O1

$(NEON)/sysroot/done: tests/neon/sysroot.sh
	@echo "unpacking Debian's libraries for aarch64 (160 MB, once)"
	@tests/neon/sysroot.sh $(NEON)/sysroot $(sort $(NEON_PACKAGES))

.PHONY: check-neon
check-neon:
	@for tool in aarch64-linux-gnu-gcc qemu-aarch64-static; do command -v $$tool > /dev/null || { \
	   echo "skipped: 1 of 1: neon: no $$tool found (apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static)"; exit 0; }; done; \
	 $(MAKE) --no-print-directory $(NEON)/sysroot/done && \
	 $(NEON_MAKE) $(NEON)/gepolab $(NEON)/gepolab-tests library && tests/neon/check.sh $(NEON)
