# Figures, studies, the numbers of documents, the paper.

# All figures, joined into paper/figures.pdf to leaf through: those of the demo's study (swept where it
# is missing), of the stored results, of the laboratory and of the clock. Six to twelve minutes on two cores, of which
# the study takes two and the recipes bias_vs_kl and sample_efficiency two more.
# FIGURES_SHOWN: of recipes with more algorithms than colours, those that are shown in colour.
FIGURES_SHOWN := reinforce,is,snis,grpo,gspo,gepo,cispo,topr
FIGURES       := $(BUILD)/figures
figures: $(BUILD)/gepolab
	@command -v pdfunite >/dev/null || { echo "make figures needs pdfunite: install poppler-utils" >&2; exit 1; }
	@test -f $(STUDY) || test $(STUDY) = $(BUILD)/demo.db || { echo "there is no $(STUDY)" >&2; exit 1; }
	@rm -rf $(FIGURES)
	@test -f $(STUDY) || $(BUILD)/gepolab sweep delay_sweep -q -o $(STUDY) -j $$(nproc)
	$(BUILD)/gepolab plot $(STUDY) -o $(FIGURES)/1_study
	$(BUILD)/gepolab plot paper/results/llm_delay_sweep_evals.tsv -o $(FIGURES)/2_transformer
	$(BUILD)/gepolab plot paper/results/llm_delay_sweep_runs.tsv -f divergence -o $(FIGURES)/2_transformer
	for s in edges_evals frontier gepo_parts causes; do \
	  $(BUILD)/gepolab plot paper/results/$$s.tsv -o $(FIGURES)/3_$$s >/dev/null 2>&1 || exit 1; done
	$(BUILD)/gepolab plot paper/results/sensitivity_ends.tsv -f sensitivity -o $(FIGURES)/3_sensitivity
	for r in bias_directions bias_groups bias_staleness denominators sample_efficiency; do \
	  $(BUILD)/gepolab bias $$r -f $(FIGURES)/4_laboratory >/dev/null || exit 1; done
	for r in bias_vs_kl truncation; do \
	  $(BUILD)/gepolab bias $$r -f $(FIGURES)/4_laboratory --highlight $(FIGURES_SHOWN) >/dev/null || exit 1; done
	$(BUILD)/gepolab theory -f $(FIGURES)/4_laboratory >/dev/null
	$(BUILD)/gepolab sim heterorl_trace --timeline --densities -f $(FIGURES)/5_clock >/dev/null
	pdfunite $(FIGURES)/*/*.pdf paper/figures.pdf
	@echo "all figures are in $(FIGURES), and together in paper/figures.pdf"

# Results that are kept in paper/results, and the documents that cite them. Results whose study takes
# long may be missing: their numbers stay as they are.
RESULTS_LATER :=
CITING        := README.md site/paper.md paper/findings.md paper/FINDINGS-lab.md paper/FINDINGS-llm.md
STUDIES       ?= delay_sweep laboratory clock

# Runs the studies behind the documents anew and keeps their results; STUDIES=llm_delay_sweep is the
# transformer's, of some ten minutes. paper/studies.sh names all studies, and the head of each recipe says how long
# it takes: seconds (announcements, after their sweeps) to an hour. The program must be built from a clean commit.
.PHONY: studies results check-results study-paper
studies: $(BUILD)/gepolab
	@paper/studies.sh $(BUILD) $(STUDIES)

# Fills the documents from their templates (README.md.in …) and the stored results; check-results reports where they differ.
results: $(BUILD)/gepolab
	@$(BUILD)/gepolab results fill $(CITING) $(RESULTS_LATER:%=--without %)
check-results: $(BUILD)/gepolab
	@$(BUILD)/gepolab results check $(CITING) $(RESULTS_LATER:%=--without %)

# paper/gepolab.pdf from the stored results: figures, definitions of all numbers, and pdflatex.
PAPER_PACKAGES := texlive-latex-base texlive-latex-recommended texlive-fonts-recommended lmodern
paper: $(BUILD)/gepolab
	@$(MAKE) --no-print-directory deps PACKAGES="$(PACKAGES) $(PAPER_PACKAGES)"
	@paper/make.sh $(BUILD) $(RESULTS_LATER)

# The pictures of documents that are drawn with names of the article: long runs and bias over directions.
.PHONY: document-figures
document-figures: $(BUILD)/gepolab
	@paper/figures.sh $(BUILD) $(BUILD)/document-figures
	@for f in long_regime/eval_score=long_regime long_regime_weights/eval_score=long_regime_weights long_regime_far/eval_score=long_regime_far long_regime_larger/eval_score=long_regime_larger long_regime_countdown/eval_score=long_regime_countdown staleness_rate/frontier=staleness_rate long_regime_small/eval_score=long_regime_small bias_directions/directions=bias_directions; do \
	  cp $(BUILD)/document-figures/$${f%=*}.png paper/figures/$${f#*=}.png || exit 1; done

# The tables and figures of one study as a paper: make study-paper STUDY=study.db
study-paper: $(BUILD)/gepolab
	@$(MAKE) --no-print-directory deps PACKAGES="$(PACKAGES) $(PAPER_PACKAGES)"
	@test -f $(STUDY) || { echo "there is no $(STUDY): run make demo first, or name a study: make study-paper STUDY=file.db" >&2; exit 1; }
	@rm -rf $(BUILD)/paper && mkdir -p $(BUILD)/paper && cp paper/paper.tex $(BUILD)/paper/
	$(BUILD)/gepolab analyze $(STUDY) --format latex > $(BUILD)/paper/tables.tex
	$(BUILD)/gepolab plot $(STUDY) -o $(BUILD)/paper
	cd $(BUILD)/paper && pdflatex -interaction=batchmode -halt-on-error paper.tex >/dev/null && \
	  pdflatex -interaction=batchmode -halt-on-error paper.tex >/dev/null || { tail -20 paper.log >&2; exit 1; }
	@echo "the paper is $(BUILD)/paper/paper.pdf"

# --- speed ---

bench: $(BUILD)/gepolab
	GEPOLAB_PYTHON=$(PYTHON) $(BUILD)/gepolab bench $(BENCH)

# The transformer on a GPU, next to PyTorch. BENCH_GPU: options of `gepolab bench gpu`.
bench-gpu: $(BUILD)/gepolab
	GEPOLAB_PYTHON=$(PYTHON) $(BUILD)/gepolab bench gpu $(BENCH_GPU)
