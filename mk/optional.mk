# Compilers of MPI and CUDA: used where they are installed, never required. Sanitized builds leave MPI out: its
# library reports leaks of its own.
MPICC    := $(if $(SANITIZE),,$(shell command -v mpicc 2>/dev/null))
CUDA     ?= 1
NVCC     := $(if $(filter 0,$(CUDA))$(SANITIZE),,$(shell command -v nvcc 2>/dev/null))
MPI_CFLAGS := $(if $(MPICC),-DGEPOLAB_WITH_MPI $(shell $(MPICC) --showme:compile 2>/dev/null))
MPI_LIBS   := $(if $(MPICC),$(shell $(MPICC) --showme:link 2>/dev/null))
