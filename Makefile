# Two commands are enough: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test fuzz lint env clean

demo: env
	$(BIN)/grcd demo

test: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# The laws alone, on ten times the examples, other ones every time; what it finds it finds again (.hypothesis/) first.
fuzz: env
	$(BIN)/python -m pytest -n 2 -m hypothesis --hypothesis-profile fuzz

lint: env
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

env: $(STAMP)

# torch first and pinned: a later, looser request for it must find it already there.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "grcd needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; run: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) demo .pytest_cache .ruff_cache .mypy_cache .hypothesis
