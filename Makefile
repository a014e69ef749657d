# Every target sets up .venv by itself. `make` alone lists the targets.

PYTHON ?= python3
# At most this many processes run the tests; each holds its own copy of PyTorch in memory.
MAX_TEST_PROCESSES ?= 8

PY := .venv/bin/python
INSTALLED := .venv/.installed
DOCS_INSTALLED := .venv/.docs_installed

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-lowest lint format docs package bench clean

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

venv: $(INSTALLED) ## set up .venv (PYTHON=python3.12 chooses the interpreter)

demo: $(INSTALLED) ## plain GNN against ID-GNN on a task that plain GNNs cannot do
	$(PY) examples/demo.py

test: $(INSTALLED) ## run the tests and the examples in the docstrings
	$(PY) -m pytest --numprocesses logical --maxprocesses $(MAX_TEST_PROCESSES) --dist worksteal

test-lowest: $(INSTALLED) ## run the tests with the lowest versions that pyproject.toml allows, in .venv-lowest
	$(PYTHON) -m venv --clear .venv-lowest
	mkdir -p build
	$(PY) -m tests.package.lowest > build/lowest.txt
	.venv-lowest/bin/python -m pip install --disable-pip-version-check --requirement build/lowest.txt
	.venv-lowest/bin/python -m pip install --disable-pip-version-check --no-deps --editable .
	# Old packages use what newer ones, of which they set no upper bound, have deprecated.
	.venv-lowest/bin/python -m pytest --numprocesses logical --maxprocesses $(MAX_TEST_PROCESSES) --dist worksteal -W ignore::DeprecationWarning

lint: $(INSTALLED) ## check style, format, types and the direction of imports
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright
	.venv/bin/lint-imports --no-logo

format: $(INSTALLED) ## format the code and fix what can be fixed without thought
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

docs: $(DOCS_INSTALLED) ## build the site into build/site, run its tutorials, and check its links
	$(PY) -m sphinx --fail-on-warning --keep-going --fresh-env --quiet --builder html docs build/site
	$(PY) docs/check.py build/site

package: $(INSTALLED) ## build wheel and sdist into dist, install both into empty environments and try them
	rm -rf dist
	$(PY) -m hatchling build -d dist
	$(PY) -m tests.package.install

bench: $(INSTALLED) ## measure the speed that docs/cost.md states
	$(PY) -m benchmarks
	$(PY) -m benchmarks.against_pyg --output benchmarks/results/against_pyg_cpu.json

clean: ## delete caches and build products (environments stay)
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +

# The tested versions come from constraints.txt; the stamp makes every later call skip this step.
$(INSTALLED): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { \
	  echo "There is no '$(PYTHON)' here. Name a Python 3.11 or newer, for example: make venv PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "idgnn needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
	    "Name another, for example: make venv PYTHON=python3.12" >&2; exit 1; }
	@echo "Setting up .venv: the first time this downloads PyTorch and takes minutes."
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(DOCS_INSTALLED): $(INSTALLED)
	$(PY) -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs]'
	@touch $@
