# `make audit` and `make test` do all the set-up they need in .venv; a complete install is not repeated.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Versions and hashes of everything, for Python 3.11. Where they cannot be had, and with `make LOCK= …`, pip chooses.
LOCK := requirements/lock.txt
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TOO_OLD = attnaudit needs Python 3.11 or newer, and $(PYTHON) is \
  $$(command -v $(PYTHON) >/dev/null && $(PYTHON) --version 2>&1 || echo missing): name another one, as in 'make $(MAKECMDGOALS) PYTHON=python3.12'.

.PHONY: audit test lint typecheck format docs wheel benchmark clean

$(INSTALLED): pyproject.toml $(LOCK) $(wildcard requirements/*.py)
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "$(TOO_OLD)" >&2; exit 1; }
	@echo "attnaudit: setting up $(VENV) (once, some minutes)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	@if $(if $(LOCK),$(BIN)/python requirements/can_install_lock.py $(LOCK),false); then \
	  $(PIP) --require-hashes --requirement $(LOCK); \
	else \
	  echo "attnaudit: without the lock; on Linux, torch may be the build for CUDA, of some gigabytes" >&2; \
	  $(PIP) '.[dev]' torchvision hatchling editables; \
	fi
	@$(BIN)/python requirements/torchvision_cpu.py
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

audit: $(INSTALLED)
	HF_HUB_OFFLINE=1 $(BIN)/attnaudit audit minilm --limit 12
	$(BIN)/attnaudit audit vit-small-cifar --limit 8
	@echo "To call attnaudit again: $(BIN)/attnaudit --help (or attnaudit --help, after '. $(BIN)/activate')." >&2

test: $(INSTALLED)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(INSTALLED)
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(INSTALLED)
	$(BIN)/python -m website.notebook
	$(BIN)/python -m website

wheel: $(INSTALLED)
	$(BIN)/python -m hatchling build --directory dist

benchmark: $(INSTALLED)
	$(BIN)/python benchmarks/head_cost.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis site dist
