# `make audit` and `make test` do all the set-up they need in .venv; a complete install is not repeated.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# On Linux the lock has the CPU build of torch for Python 3.11: where pip finds only others, `make LOCK= …` does without.
LOCK := requirements/lock.txt
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: audit test lint typecheck format docs benchmark clean

$(INSTALLED): pyproject.toml $(LOCK) requirements/torchvision_cpu.py
	@echo "attnaudit: setting up $(VENV) (once)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) $(if $(LOCK),--require-hashes --requirement $(LOCK),'.[dev]' torchvision hatchling editables)
	@$(BIN)/python requirements/torchvision_cpu.py
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

audit: $(INSTALLED)
	HF_HUB_OFFLINE=1 $(BIN)/attnaudit audit minilm --limit 12
	$(BIN)/attnaudit audit vit-small-cifar --limit 8

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

benchmark: $(INSTALLED)
	$(BIN)/python benchmarks/head_cost.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis site
