# The site: static pages in $(BUILD)/site, from the documents and from what the program prints.

# MkDocs and its theme come from PyPI into a virtual environment below $(BUILD), once; Doxygen from Debian.
SITE_PACKAGES := doxygen fonts-lmodern python3-venv
SITE_PYTHON   := $(BUILD)/site-env/bin/python
$(BUILD)/site-env/done: site/requirements.txt
	@python3 -m venv $(BUILD)/site-env
	@$(SITE_PYTHON) -m pip install -q --disable-pip-version-check -r site/requirements.txt && touch $@

.PHONY: site check-site
site: $(BUILD)/gepolab
	@$(MAKE) --no-print-directory deps PACKAGES="$(PACKAGES) $(SITE_PACKAGES)"
	@$(MAKE) --no-print-directory $(BUILD)/site-env/done
	@if [ -e $(WASM)/gepolab.wasm ]; then $(MAKE) --no-print-directory $(WASM)/page/gepolab.html; \
	 else echo "the tools in the browser are left out: \`make wasm\` builds them"; fi
	@$(SITE_PYTHON) site/pages.py $(BUILD)/gepolab . $(BUILD)/site-pages $(wildcard $(WASM)/page)
	@NO_MKDOCS_2_WARNING=1 SITE_PAGES=$(abspath $(BUILD)/site-pages) SITE_OUTPUT=$(abspath $(BUILD)/site) SITE_PYTHON=$(abspath python) \
	  $(SITE_PYTHON) -m mkdocs build -q --strict -f site/mkdocs.yml
	@{ cat site/Doxyfile; echo 'OUTPUT_DIRECTORY = $(BUILD)/site'; } | doxygen - > $(BUILD)/doxygen.log 2>&1 || { tail $(BUILD)/doxygen.log; exit 1; }
	@echo "the site is $(BUILD)/site/index.html (its search needs a server: python3 -m http.server -d $(BUILD)/site)"

# Every link, anchor, image and command line; pages at 400 and 1,400 pixels in Chromium, without script, light and dark.
check-site: site
	@$(SITE_PYTHON) tests/site/check.py $(BUILD)/gepolab $(BUILD)/site
