# make run    installs into .venv and runs one experiment   (CONFIG=..., ARGS=...)
# make test   installs into .venv and runs the tests        (ARGS=...)
# make faults installs into .venv and attacks with faults   (ARGS=--minutes=5)
# make lint   checks style and types
# make docs   builds the site into docs/_build/html and executes its notebooks

PYTHON ?= python3
CONFIG ?= configs/permmnist.py
ARGS ?=
BIN := .venv/bin
# The CUDA build of JAX is chosen where the driver lists an NVIDIA GPU.
EXTRAS := dev$(shell nvidia-smi -L 2>/dev/null | grep -q GPU && echo ,cuda12)

.PHONY: run test faults lint docs clean

run: .venv/installed
	$(BIN)/python -m ebmjax.main --config=$(CONFIG) $(ARGS)

# If a worker process crashes, the run ends: xdist would wait for its files forever.
test: .venv/installed
	$(BIN)/python -m pytest -n auto --dist loadfile --max-worker-restart=0 $(ARGS)

faults: .venv/installed
	$(BIN)/python -m tests.faults $(ARGS)

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/installed-docs
	rm -rf docs/_build
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs=2 -b html docs docs/_build/html

# Made again when the dependencies change; an interrupted install leaves no stamp.
.venv/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ebmjax needs Python 3.11 or newer; give one with PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$(EXTRAS)]"
	touch $@

.venv/installed-docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

clean:
	rm -rf .venv build dist docs/_build *.egg-info
