# The CUDA backend, where nvcc is found.

# CUDA's runtime is linked statically; cuBLASLt is opened when a GPU is used, from the loader's path
# or the toolkit's folder as it was at build time. Machine code for sm_80 and sm_90a, and PTX of compute_90 that
# drivers compile for what comes later; sm_90a has the instructions (wgmma) that no later kind has. NCCL is opened the same way where its header was found.
ifneq ($(NVCC),)
CUDA_LIB   := $(abspath $(lastword $(shell $(NVCC) --dryrun -x cu /dev/null 2>&1 | sed -n 's/^.*LIBRARIES=//p' | tr -d '"' | sed 's/-L//g')))
CUDA_MAJOR := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
CUDA_OBJ   := $(patsubst %.cu,$(BUILD)/%.cu.o,$(wildcard llm/backend/cuda/*.cu))
NVCC_CODE  := -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_90,code=compute_90
CUDA_LIBS  := -L$(CUDA_LIB) -lcudart_static -lstdc++ -ldl -lrt
NVCCFLAGS  := -std=c++17 -O3 -I. -lineinfo -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wshadow \
              -DGEPOLAB_CUDA_LIB='"$(CUDA_LIB)"' -DGEPOLAB_CUDA_MAJOR='"$(CUDA_MAJOR)"'
endif

# Changes with CUDA=0, too: what depends on it is made anew.
$(eval $(call stamp,cuda-flags,$(NVCC) $(NVCC_CODE) $(NVCCFLAGS)))
define compile_kernels
@mkdir -p $(@D)
$(Q)$(shell command -v ccache) $(NVCC) $(NVCCFLAGS) $(NVCC_CODE) $(PKG_CFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
endef
# Instructions of compute capability 9.0 alone: other devices never run this file's kernels.
WGMMA_CODE := -gencode arch=compute_90a,code=sm_90a
$(BUILD)/llm/backend/cuda/attention_wgmma.cu.o: NVCC_CODE = $(WGMMA_CODE)
$(BUILD)/llm/backend/cuda/%.cu.o: llm/backend/cuda/%.cu $(BUILD)/gen/cuda-flags
	$(compile_kernels)
$(BUILD)/llm/backend/open/open.o: CPPFLAGS += $(if $(NVCC),-DGEPOLAB_WITH_CUDA)
$(BUILD)/llm/backend/open/open.o: $(BUILD)/gen/cuda-flags

-include $(CUDA_OBJ:.o=.d)
