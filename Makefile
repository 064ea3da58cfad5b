# Purine's everyday commands; `make` alone lists them. Each does what is still to be done first.
BUILD := build/release
# What installs missing packages; SETUP=true leaves the machine as it is.
SETUP ?= scripts/setup

.PHONY: help setup build test demo format check-format clean
.DEFAULT_GOAL := help

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile
	@echo "Packages are installed with apt; with SETUP=true none are (make build SETUP=true)."

setup:  ## install the packages that are missing (as root or with sudo)
	@$(SETUP)

build: $(BUILD)/build.ninja  ## build the command, build/release/purine
	@cmake --build $(BUILD) --target purine_command

test: $(BUILD)/build.ninja  ## build everything and run every test
	@$(SETUP) browser
	@cmake --build $(BUILD)
	@scripts/run-tests $(BUILD) --may-skip net.cluster net.faults net.launcher net.mpi cli.report cli.slurm

demo: build  ## train a network on Fashion-MNIST and print its test accuracy
	@$(BUILD)/purine train examples/jobs/fashion-mnist.toml --new-run

format:  ## format the sources in place
	@$(SETUP) format
	@git ls-files -z '*.h' '*.cpp' | xargs -0 clang-format-14 -i

check-format:  ## fail if a source file is not formatted
	@$(SETUP) format
	@git ls-files -z '*.h' '*.cpp' | xargs -0 clang-format-14 --dry-run --Werror

clean:  ## remove what was built; runs/ stays
	@rm -rf build

$(BUILD)/build.ninja: CMakePresets.json | setup
	@cmake --preset release
