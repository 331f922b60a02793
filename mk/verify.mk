# Every check on the last commit, and the release that asks for them.

# make verify [PART='check torture'] [BUDGET=120m]: parts, logs and the record are described in
# tests/verify/verify.sh. make verify-table prints the table.
.PHONY: verify verify-table check-verify release
verify:
	@BUDGET=$(BUDGET) tests/verify/verify.sh $(BUILD) $(PART)
verify-table:
	@TABLE=1 tests/verify/verify.sh $(BUILD)

# Tags the last commit as VERSION: refused while a part of make verify has not passed on it, while VERSION is a
# development version, or while CHANGELOG.md or CITATION.cff name another one. WITHOUT='bundle': without a part that
# this machine cannot run, which is said by name.
release:
	@WITHOUT='$(WITHOUT)' tests/verify/release.sh $(BUILD)

# That make verify and make release do what they promise, on a small repository of its own.
check-verify:
	@tests/verify/check.sh
