# Every target sets up .venv by itself. `make` alone lists the targets.

PYTHON ?= python3
# At most this many processes run the tests; each holds its own copy of PyTorch in memory.
MAX_TEST_PROCESSES ?= 8

PY := .venv/bin/python
INSTALLED := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint format bench clean

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

venv: $(INSTALLED) ## set up .venv (PYTHON=python3.12 chooses the interpreter)

demo: $(INSTALLED) ## plain GNN against ID-GNN on a task that plain GNNs cannot do
	$(PY) examples/demo.py

test: $(INSTALLED) ## run the tests and the examples in the docstrings
	$(PY) -m pytest --numprocesses logical --maxprocesses $(MAX_TEST_PROCESSES) --dist worksteal

lint: $(INSTALLED) ## check style, format, types and the direction of imports
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright
	.venv/bin/lint-imports --no-logo

format: $(INSTALLED) ## format the code and fix what can be fixed without thought
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

bench: $(INSTALLED) ## measure the speed that the README states
	$(PY) -m benchmarks

clean: ## delete caches and build products (.venv stays)
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
