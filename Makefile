# `make` alone prints the targets. `make demo` and `make test` do all set-up on a fresh machine.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
BUILD ?= build/release
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  if $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; \
  then echo $$p; exit; fi; done; echo python3)
CXX ?= c++
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Each process of the tests needs 2 GiB.
TEST_JOBS ?= $(shell echo $$(($(JOBS) < 4 ? $(JOBS) : 4)))

# The environment of `make libraries`; it uses the extension in the source tree.
LIBRARIES_VENV ?= $(VENV)-libraries

# The environment of `make interop`, likewise.
INTEROP_VENV ?= $(VENV)-interop

PY := $(VENV)/bin/python
CMAKE := $(VENV)/bin/cmake
SETUP := $(VENV)/.set-up
CACHE := $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
# Without it ccache does not cache sources that use a precompiled header.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
PYTEST := $(PY) -m pytest
CXX_FILES = $(shell git ls-files 'cpp/*.?pp' 'xla_plugin/*.?pp' 'tests/cpp/*.?pp' 'tests/sdk/*.?pp')

# configure <folder> <more options>: runs the first time only; cmake itself notices later changes
define configure
[ -f $(1)/build.ninja ] || $(CMAKE) -S . -B $(1) -G Ninja -DCMAKE_CXX_COMPILER=$(CXX) \
  -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV))/bin/ninja -DPython_EXECUTABLE=$(abspath $(PY)) $(CACHE) \
  -Dpybind11_DIR=$$($(PY) -m pybind11 --cmakedir) -DIPUJAX_BUILD_TESTS=ON $(2)
endef

# install <environment> <extras>: creates a virtual environment that imports ipujax from here
define install
[ -x $(1)/bin/python ] || $(PYTHON) -m venv $(1)
$(1)/bin/python -m pip install -q --upgrade 'pip>=24'
$(1)/bin/python .ci/dev_environment.py requirements $(2) > $(1)/requirements.txt
$(1)/bin/python -m pip install -q -r $(1)/requirements.txt
$(1)/bin/python .ci/dev_environment.py link
endef

.PHONY: help setup build sdk sdkplugin runtime demo test tiny cpp bench changes fuzz sweep mutants verdicts conformance libraries interop resume lint format types docs asan tsan wheel clean

help: ## print this list
	@echo "ipujax: JAX on Graphcore IPUs. Targets:"
	@sed -n 's/^\([a-z]*\):.*## /  \1|/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r name what; do printf '%-10s %s\n' "$$name" "$$what"; done

setup: $(SETUP) ## create .venv with everything from PyPI for building and testing

$(SETUP): pyproject.toml .ci/dev_environment.py
	@.ci/check_toolchain.sh $(PYTHON) $(CXX)
	$(call install,$(VENV),examples test)
	@touch $@

build: $(SETUP) ## build the extension into ipujax/_poplar
	@$(call configure,$(BUILD))
	@$(CMAKE) --build $(BUILD) -j $(JOBS) --target _poplar
	@$(CMAKE) --install $(BUILD) --prefix . > $(BUILD)/install.log

sdk: $(SETUP) ## install the IPU Model as a folder shaped like the Poplar SDK, build/sdk
	@$(call configure,$(BUILD))
	@$(CMAKE) --build $(BUILD) -j $(JOBS) --target sdk
	@$(CMAKE) --install $(BUILD) --component sdk --prefix build/sdk > $(BUILD)/sdk.log

sdkplugin: sdk ## build the extension against build/sdk, seeing public names only
	@$(call configure,build/against_sdk,-DIPUJAX_POPLAR_SDK=$(abspath build/sdk))
	@$(CMAKE) --build build/against_sdk -j $(JOBS)

runtime: $(SETUP) ## install what runs saved programs without Python, a library and a C header, build/runtime
	@$(call configure,$(BUILD))
	@$(CMAKE) --build $(BUILD) -j $(JOBS) --target ipujax_runtime
	@$(CMAKE) --install $(BUILD) --component runtime --prefix build/runtime > $(BUILD)/runtime.log

demo: build ## train a network on handwritten digits on the IPU Model
	$(PY) examples/models/digits_mlp.py

test: build cpp sdkplugin runtime ## run all tests, C++ and Python, in as many processes as TEST_JOBS says
	$(PYTEST) -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder

tiny: build ## run an end-to-end smoke test, under 20 s
	$(PYTEST) -m tiny

cpp: $(SETUP) ## build the C++ tests (pytest runs them)
	@$(call configure,$(BUILD))
	@$(CMAKE) --build $(BUILD) -j $(JOBS)

changes: build ## make each change of docs/add-an-op.md in a copy of the tree, build and run it
	$(PYTEST) -m "rebuild or not rebuild" tests/docs/test_add_an_op.py tests/changes

fuzz: build ## test COUNT random programs from SEED; KIND=programs (default), gradients, ops, sharded, meshes, pipelines, composed, functions, training, dtypes
	$(PY) -m tests.fuzz --kind $(or $(KIND),programs) --count $(or $(COUNT),10000) --seed $(or $(SEED),0)

sweep: build ## call each function of ipu.nn and ipu.ops COUNT times (default 200), in random shapes and modes
	$(PY) -m tests.fuzz --each $(or $(COUNT),200) --seed $(or $(SEED),0)

bench: build cpp ## compare speed with JAX's CPU backend; fails if a bound is missed
	$(PY) -m ipujax bench

mutants: build ## read 20,000 altered files of each kind; run 100,000 altered executables under the sanitizers
	$(PY) -m tests.mutants.files
	MUTANTS=$(or $(COUNT),100000) .ci/sanitize.sh address,undefined build/asan $(PY)

resume: build ## kill trainings COUNT (50) times at random moments; each must resume and end bit-equal
	$(PY) -m tests.training.kills $(or $(COUNT),50) $(or $(SEED),0)
	$(PY) -m tests.hosts.kills $(or $(COUNT),30) $(or $(SEED),0)

verdicts: build ## compile published programs that ran or ran out of memory; fails where the model differs
	$(PY) -m tests.stages.verdicts

conformance: build ## run JAX's harnesses, tests of optax and of flax, compare with the CPU
	$(PY) -m ipujax conformance --page docs/conformance.md
	$(PY) -m ipujax conformance --suite gradients
	$(PY) -m ipujax conformance --suite optax
	$(PY) -m ipujax conformance --suite flax

libraries: build $(LIBRARIES_VENV)/.set-up ## install libraries built on JAX, run programs of each on IPU and CPU
	$(LIBRARIES_VENV)/bin/python -m tests.libraries $(if $(ONLY),--only $(ONLY))

$(LIBRARIES_VENV)/.set-up: pyproject.toml .ci/dev_environment.py
	$(call install,$(LIBRARIES_VENV),libraries)
	@touch $@

interop: build $(INTEROP_VENV)/.set-up ## install torch, grain, tf.data and others, test what passes between them and IPUs
	$(INTEROP_VENV)/bin/python -m pytest tests/interop tests/jax_compat/test_dlpack.py

$(INTEROP_VENV)/.set-up: pyproject.toml .ci/dev_environment.py
	$(call install,$(INTEROP_VENV),interop)
	@touch $@

lint: $(SETUP) ## check style: ruff, clang-format
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/clang-format --dry-run -Werror $(CXX_FILES)

format: $(SETUP) ## rewrite files in the project's style
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $(CXX_FILES)

types: build ## check Python types, of the extension by the stubs that its signatures give
	@[ ipujax/_poplar/_poplar/__init__.pyi -nt $$(ls -t ipujax/_poplar/*.so | head -1) ] || \
	  $(PY) .ci/stubs.py ipujax/_poplar/_poplar
	$(VENV)/bin/mypy

docs: runtime ## regenerate pages, check links and examples
	$(PY) -m ipujax options --markdown > docs/options.md
	$(PY) -m ipujax ops > docs/ops.md
	$(PY) .ci/poplar_api.py > docs/poplar-api.md
	$(PYTEST) -q tests/docs

asan: $(SETUP) ## run C++ tests and the smoke test under address and undefined-behaviour sanitizers
	.ci/sanitize.sh address,undefined build/asan $(PY)

tsan: $(SETUP) ## run C++ threading tests under the thread sanitizer
	.ci/sanitize.sh thread build/tsan $(PY)

wheel: $(SETUP) ## build the wheel into dist/
	$(if $(CACHE),CMAKE_CXX_COMPILER_LAUNCHER=ccache )$(PY) -m pip wheel -q --no-deps --no-build-isolation -w dist .

clean: ## remove build products, keep .venv
	rm -rf build dist ipujax/_poplar/*.so ipujax/_poplar/include .pytest_cache .mypy_cache .ruff_cache
