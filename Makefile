# Every target does its own set-up: a fresh machine needs python3, pip, make and a C compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test lint types contracts unit slowest coverage environments lowest newest bench docs evidence links clean

help:
	@echo "make demo    a private regression table on a real survey, with plan, ledger and report (out/demo)"
	@echo "make test    lint, types, import contracts and tests"
	@echo "make slowest the twenty slowest tests, functions and files of the last make test"
	@echo "make coverage   the tests of make test again, and which lines they run; about twice as long"
	@echo "make environments   a smoke test of the wheel with the lowest and with the newest versions of what it needs"
	@echo "make docs    the guides as a site, every page run, to be read without a network (out/docs/index.html)"
	@echo "make evidence   what was measured, as a site beside the guides, every page run (out/lab/index.html)"
	@echo "make links   the links of the guides that lead outside, each tried where there is a network; never in CI"
	@echo "make bench   benchmarks, acceptance checks and long tests; writes JSON to out/bench"
	@echo "make clean   remove what the targets made"

$(READY): pyproject.toml lab/pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || ($(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv $(VENV))
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e ./lab
	@touch $(READY)

demo: $(READY)
	@$(BIN)/python demo/redbook.py

# types need one core, the tests two: side by side no core waits
test: lint contracts
	@$(MAKE) --no-print-directory -j 2 types unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/prose_lint.py . --quiet --ratchet .ci/prose.json

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports
	$(BIN)/python .ci/reader_load.py --ceilings

PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not long" -q

unit: $(READY)
	$(PYTEST) --junitxml=out/tests.xml

slowest: $(READY)
	@test -f out/tests.xml || $(MAKE) --no-print-directory unit
	@$(BIN)/python .ci/slowest.py out/tests.xml

coverage: $(READY)
	$(PYTEST) --cov --cov-report=term:skip-covered

# each needs a core
environments: $(READY)
	@$(MAKE) --no-print-directory -j 2 --output-sync=target lowest newest

lowest newest: $(READY)
	@.ci/environment $@

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .ci/with-postgres $(BIN)/mkdocs build --strict
	@echo "open out/docs/index.html"

evidence: $(READY)
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/mkdocs build --strict -f mkdocs.lab.yml
	@echo "open out/lab/index.html"

links: $(READY)
	$(BIN)/python -m confide_lab.links

bench: $(READY)
	.ci/with-postgres $(BIN)/confide lab bench all

clean:
	rm -rf $(VENV) .venv-diffprivlib .venv-smartnoise .venv-tumult .venv-marginaleffects out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
