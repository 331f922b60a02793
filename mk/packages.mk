# Debian packages that are needed, and flags of their libraries.

PACKAGES := gcc libc6-dev pkg-config libgsl-dev libopenblas-dev gnuplot-nox fonts-dejavu-core libcunit1-dev \
            libsqlite3-dev libyaml-dev libcjson-dev librandom123-dev libxxhash-dev libpcre2-dev libutf8proc-dev \
            zlib1g-dev libzstd-dev libflint-dev $(if $(filter bookworm jammy,$(shell sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)),libflint-arb-dev)

# Libraries: asked for lazily, so that `make deps` works before they exist.
PKGS      = gsl openblas sqlite3 yaml-0.1 libcjson libpcre2-8 libutf8proc zlib libzstd
PKG_CFLAGS = $(eval PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null))$(PKG_CFLAGS)
# OpenBLAS is the CBLAS: GSL's own reference one would shadow it.
PKG_LIBS   = $(eval PKG_LIBS := $(filter-out -lgslcblas,$(shell pkg-config --libs $(PKGS) 2>/dev/null)))$(PKG_LIBS)
# Arb: a library of its own before FLINT 3. Only the program has llm/answer, libgepolab does not.
ARB_LIBS   = $(eval ARB_LIBS := $(firstword $(foreach l,flint-arb arb,$(if $(filter /%,$(shell $(CC) -print-file-name=lib$(l).so)),-l$(l)))) -lflint)$(ARB_LIBS)

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
