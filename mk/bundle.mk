# What a machine with a GPU, but without our packages, needs: $(BUILD)/gpu-bundle/run.sh runs it there.
# The machine's own C and C++ libraries and CUDA's are used, which must be as new as those here. Its
# programs have the kernels for one kind of GPU alone (BUNDLE_SM: 90 is the H100 and the H200). With
# BUNDLE_OBJECTS=1 come the objects that run.sh --rebuild links with kernels compiled there, for
# which the machine has nvcc but not the headers of our packages.
BUNDLE      := $(BUILD)/gpu-bundle
BUNDLE_SM   ?= 90
BUNDLE_AT   := $(BUILD)/sm_$(BUNDLE_SM)
BUNDLE_LIBS := $(subst $(BUILD)/libllm.a,$(BUNDLE_AT)/libllm.a,$(LIBS))
BUNDLE_CODE := $(if $(filter 90,$(BUNDLE_SM)),90a,$(BUNDLE_SM))
$(BUNDLE_AT)/%.cu.o: NVCC_CODE = -gencode arch=compute_$(BUNDLE_CODE),code=sm_$(BUNDLE_CODE)
$(BUNDLE_AT)/llm/backend/cuda/attention_wgmma.cu.o: NVCC_CODE = $(WGMMA_CODE)
$(BUNDLE_AT)/%.cu.o: %.cu $(BUILD)/gen/cuda-flags
	$(compile_kernels)
$(BUNDLE_AT)/libllm.a: $(call obj,llm) $(CUDA_OBJ:$(BUILD)/%=$(BUNDLE_AT)/%)
	@rm -f $@ && $(AR) qcs $@ $^
$(BUNDLE_AT)/gepolab: $(call obj,experiments) $(EMBED) $(BUNDLE_LIBS)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -s -o $@ $^ $(LDLIBS)
$(BUNDLE_AT)/gepolab-tests: $(TEST_OBJ) $(EXP_LIB) $(call obj,library) $(BUNDLE_LIBS)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -s -o $@ $^ -lcunit $(LDLIBS)

define bundle_objects
mkdir $(BUNDLE_AT)/bundle && cd $(BUNDLE_AT)/bundle && \
  $(AR) qcs host.a $(abspath $(EXP_LIB) $(call obj,library) $(foreach r,analysis sim toy llm core,$(call obj,$(r)))) && \
  $(AR) qcs tests.a $(abspath $(TEST_OBJ)) && cp $(abspath $(BUILD)/experiments/cli/main.o) . && strip -g host.a tests.a main.o && \
  tar -cJf $(abspath $(BUNDLE))/objects.tar.xz * && rm -r ../bundle
endef
ifeq ($(NVCC),)
gpu-bundle:
	@echo "make gpu-bundle needs nvcc: what is built without it has no CUDA backend" >&2; exit 1
else
gpu-bundle: $(BUNDLE_AT)/gepolab $(BUNDLE_AT)/gepolab-tests
	@rm -rf $(BUNDLE) $(BUNDLE_AT)/bundle && mkdir -p $(BUNDLE) $(addprefix $(BUNDLE_AT)/bundle/,lib experiments/bench recipes)
	@cp $^ $(BUNDLE_AT)/bundle/
	@ldd $^ | awk '$$2 == "=>" && $$3 ~ /^\// {print $$3}' | sort -u | \
	   grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so' | xargs -I{} cp -L {} $(BUNDLE_AT)/bundle/lib/
	@cp experiments/bench/gpu.py experiments/bench/serve.py $(BUNDLE_AT)/bundle/experiments/bench/
	@cp experiments/recipes/llm_delay_sweep.yaml experiments/recipes/llm_quick.yaml $(BUNDLE_AT)/bundle/recipes/
	@tar -C $(BUNDLE_AT)/bundle -czf $(BUNDLE)/bundle.tar.gz . && rm -r $(BUNDLE_AT)/bundle
	@cp experiments/bench/gpu_bundle.sh $(BUNDLE)/run.sh
	@$(if $(BUNDLE_OBJECTS),$(bundle_objects))
	@experiments/bench/bundle_fits.sh $(BUNDLE) || { rm -r $(BUNDLE); exit 1; }
endif

-include $(CUDA_OBJ:$(BUILD)/%.o=$(BUNDLE_AT)/%.d)
