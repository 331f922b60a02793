# Manual page, completion, installation, Debian packages.

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
	@$(MAKE) --no-print-directory deps PACKAGES="$(PACKAGES) dpkg-dev debhelper fakeroot libjs-chart.js dh-python python3 openmpi-bin libopenmpi-dev"
	@experiments/packaging/deb.sh $(BUILD)
# Installs those packages into an empty Debian system and uses them there; needs root.
check-deb:
	@$(MAKE) --no-print-directory deps PACKAGES="debootstrap lintian"
	@tests/packaging/deb.sh $(BUILD)

# Recipes of conda-forge, Homebrew, Nix and Spack: they name what the Makefile needs, and their parsers read them.
.PHONY: check-recipes
check-recipes:
	@tests/packaging/recipes.sh
