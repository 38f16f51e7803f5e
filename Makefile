# Two commands are enough: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test fuzz lint docs dist env clean

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

# Static pages in site/, which a browser opens from there; links between them are checked, and a warning is an error.
docs: env
	$(PIP) --editable '.[test,docs]'
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet --conf-dir docs . site
	@echo "written: site/docs/index.html"

# A wheel and a source distribution in dist/.
dist: env
	$(BIN)/python -m hatchling build

env: $(STAMP)

# torch first and pinned: a later, looser request for it must find it already there.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "grcd needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; run: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) --editable '.[test]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) demo site dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
