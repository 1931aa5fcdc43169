# Thin names for documented commands. Each sets up what it needs in a virtual environment of its own.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(shell find src -name '*.p*' -o -name '*.json')

.PHONY: help demo test docs lint coverage accuracy mutate sanitize differential bench bench-replay clean

help:
	@echo 'make demo      build, install, plan a real model, and show the worked examples'
	@echo 'make test      build, install and run the tests'
	@echo 'make docs      build the documentation into docs/_build/html'
	@echo 'make lint      ruff, cython-lint, mypy, sp-repo-review'
	@echo 'make coverage  lines of the Python files, kernels and wrappers that the tests reach'
	@echo 'make accuracy  the error of every formula over a million points'
	@echo 'make mutate    mutants of the kernels and of the oracle: do the tests notice?'
	@echo 'make sanitize  UBSan, ASan, reference counts, the same bits from every compiler'
	@echo 'make differential  caches, rotary scaling and sampling against what transformers does'
	@echo 'make bench     the speed table'
	@echo 'make bench-replay TRACE=FILE   what a whole trace gives, and how fast: see the guide to the replay'

demo: $(VENV)/.installed
	$(BIN)/kvformulas plan examples/kv_plan/gemma-3-12b-it --context 32K --kv-memory 16GiB
	@echo
	$(BIN)/kvformulas tour

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "not docs"

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W -n --keep-going -q -j auto docs docs/_build/html

lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group lint
	PATH="$(abspath $(BIN)):$$PATH" tools/lint.sh

coverage: $(VENV)/.installed-test
	$(BIN)/python tools/line_coverage.py

accuracy: $(VENV)/.installed-test
	$(BIN)/python tools/accuracy.py --points 1000000 --output docs/data/accuracy.json

mutate: $(VENV)/.installed-test
	$(BIN)/python tools/mutate.py --output docs/data/mutation.json

sanitize: $(VENV)/.installed-test
	$(BIN)/python tools/sanitize.py

differential: $(VENV)/.installed-test $(VENV)/.installed-differential
	$(BIN)/python -m pytest tests/differential

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/run.py --output docs/data

bench-replay: $(VENV)/.installed-bench
	$(BIN)/kvformulas replay "$(TRACE)" --capacity 300,1000,3000,10000,30000,100000 --json > $(VENV)/replay.json
	mv $(VENV)/replay.json docs/data
	$(BIN)/python benchmarks/replay.py "$(TRACE)" --output docs/data

$(VENV)/.installed: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet .
	@touch $@

$(VENV)/.installed-%: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet ".[$*]"
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist src/*.egg-info docs/_build docs/formulas
