# `make test` and `make demo` are all that a fresh machine needs: each makes its own virtual
# environment first (VENV, one minute and about 2 GB), from Python 3.11 or newer (PYTHON).
#
# torch comes in the version that constraints.txt pins. Where the plain build from PyPI would bring
# several GB of CUDA libraries along, take the CPU build from PyTorch's own index instead:
#
#     PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make test

VENV ?= .venv
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	echo $$python && break; done)

bin := $(abspath $(VENV))/bin
installed := $(VENV)/.installed
# Test processes, of one thread each: tiny tensors on several threads only wait for each other.
# Three for two cores, because some tests wait for browsers and servers.
JOBS ?= 3
unexport JOBS # recipes have a setting of that name
# Quick tests first, so that a mistake shows early; the tests of a file stay in one process.
tests := $(wildcard tests/unit tests/cli tests/recipes tests/integration tests/browser tests/system)

.PHONY: help install test lint slow demo docs clean

help:
	@echo "make test     lint, types and tests (some minutes; JOBS=5 for four cores)"
	@echo "make demo     the whole way on the toy corpus, from text to scored translations"
	@echo "make slow     tests that take long, and the rest of large crosses"
	@echo "make lint     ruff and mypy alone"
	@echo "make docs     docs/api.md, from the docstrings"
	@echo "make install  the virtual environment in $(VENV) alone"
	@echo "make clean    delete the virtual environment, the demo and all caches"

install: $(installed)

$(installed): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "nmtflex needs Python 3.11 or newer, and found none; \
	install it, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(bin)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[dev]'
	touch $@

lint: $(installed)
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy

# Bytecode is kept for the many processes that tests start, whatever the environment says.
test: lint
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(bin)/pytest --numprocesses $(JOBS) --dist loadfile \
		--no-loadscope-reorder --durations=10 $(tests)

slow: $(installed)
	$(bin)/pytest -m slow --durations=0

docs: $(installed)
	$(bin)/python docs/make_api.py

# Starts afresh every time: what it makes lies in demo/ until then.
demo: $(installed)
	PATH="$(bin):$$PATH" bash recipes/demo.sh demo

clean:
	rm -rf $(VENV) demo build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find nmtflex tests -name __pycache__ -type d -prune -exec rm -rf {} +
