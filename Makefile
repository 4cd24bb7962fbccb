# Short commands for building and testing sonde. Meson does the work; `make help` lists the targets.
#
#   make run      from nothing to a running demo: installs what is missing, builds, runs it
#   make test     from nothing to tested: installs what is missing, builds, runs every test
# BUILD is the build folder. The checkout itself may be read-only: make BUILD=/elsewhere test
BUILD  ?= build
PREFIX ?= /usr/local
# On Red Hat and SUSE, the loader looks into /usr/lib64 and not into /usr/lib.
LIBDIR ?= $(if $(and $(filter /usr,$(PREFIX)),$(wildcard /usr/lib64/libc.so.6)),lib64,lib)
MESON   = meson
NINJA   = ninja -C "$(BUILD)"
export BUILD
ifeq ($(strip $(BUILD)),)
$(error BUILD is empty: name a build folder, or leave it out)
endif

all: build ## build into build/; BUILD=folder for another place
	@$(NINJA) --quiet

.PHONY: all build run test bench lint format fuzz sanitize soak campaign dist smoke install uninstall clean help

build:
	@tools/setup "$(BUILD)" "$(PREFIX)" "$(LIBDIR)"

run: ## install what is missing, build, run the demo job (20 s)
	@tools/deps build
	@$(MAKE) --no-print-directory -s all
	@tools/demo "$(BUILD)"

test: ## install what is missing, build, run every test
	@tools/deps build test
	@$(MAKE) --no-print-directory -s build
	@tools/test "$(BUILD)"

bench: ## measure everything against its peers; BENCH=emit for one
	@tools/deps build bench
	@$(MAKE) --no-print-directory -s build
	@tools/bench "$(BUILD)" $(BENCH)

lint: ## layering, compiler warnings as errors under gcc and clang, clang-format, clang-tidy
	@tools/deps build test lint
	@tools/lint

format: ## put every source file into the house's format
	@tools/deps lint
	@tools/wrap
	@git ls-files '*.c' '*.h' | xargs clang-format -i

sanitize: ## unit tests under the address, undefined and thread sanitizers
	@tools/deps build test
	@tools/sanitize

fuzz: ## a minute on the fuzz targets; SECONDS_EACH=n for more
	@tools/deps build test fuzz
	@tools/fuzz $(or $(SECONDS_EACH),12)

soak: ## a job on three hosts for MINUTES=10, with kills: memory, descriptors, every point; needs root
	@tools/deps build test
	@$(MAKE) --no-print-directory -s build
	@tools/soak "$(BUILD)" $(or $(MINUTES),10) $(SEED)

campaign: ## the randomized tests with new seeds for MINUTES=10; SEED=n for the first
	@tools/deps build test
	@$(MAKE) --no-print-directory -s build
	@tools/campaign "$(BUILD)" $(or $(MINUTES),10) $(SEED)

dist: ## tarballs and wheels for x86_64 and aarch64, into build-dist/; ARCH=x86_64 for one
	@tools/deps dist
	@tools/dist --to "$(BUILD)-dist" $(ARCH)

smoke: ## install and use these archives here; SYSTEMS="buster bookworm:arm64" in bare systems, as root
	@tools/deps dist smoke
	@tools/smoke --archives "$(BUILD)-dist" $(SYSTEMS)

install: all ## install under PREFIX (/usr/local), libraries in its LIBDIR (lib); DESTDIR is honoured
	@$(MESON) configure "$(BUILD)" --prefix="$(PREFIX)" --libdir="$(LIBDIR)" -Dpython.platlibdir="$$(tools/python-folder "$(PREFIX)")" >/dev/null
	@$(MESON) install -C "$(BUILD)" --quiet
	@if [ "$(DESTDIR)" ]; then echo "installed under $(DESTDIR)$(PREFIX)"; else tools/installed "$(PREFIX)" "$(LIBDIR)"; fi

uninstall: ## remove what install has installed
	@tools/uninstall "$(BUILD)"

# Folders that Meson made, and no others: a clone may hold a build-notes/ that somebody wrote.
clean: ## remove the build folders
	@for folder in "$(BUILD)" "$(BUILD)"-*; do [ ! -e "$$folder/meson-private" ] || rm -rf --one-file-system -- "$$folder"; done
	@[ ! -e "$(BUILD)-dist/.archives" ] || rm -rf --one-file-system -- "$(BUILD)-dist"

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
