# Short commands for building and testing sonde. Meson does the work; `make help` lists the targets.
#
#   make run      installs missing packages, builds, runs a demo
#   make test     installs missing packages, builds, runs every test
#
# BUILD is the build folder. With one elsewhere, the checkout may be read-only, as in
# make BUILD=/elsewhere test
BUILD  ?= build
PREFIX ?= /usr/local
# On Red Hat and SUSE, the loader searches /usr/lib64, but not /usr/lib.
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

run: ## install missing packages, build, run the demo job (20 s)
	@tools/deps build
	@$(MAKE) --no-print-directory -s all
	@tools/demo "$(BUILD)"

test: ## install missing packages, build, run every test
	@tools/deps build test
	@$(MAKE) --no-print-directory -s build
	@tools/test "$(BUILD)"

bench: ## run every bench and compare with peers; BENCH=emit for one
	@tools/deps build bench
	@$(MAKE) --no-print-directory -s build
	@tools/bench "$(BUILD)" $(BENCH)

lint: ## check layering, columns, warnings of gcc and clang, clang-format, clang-tidy
	@tools/deps build test lint
	@tools/lint

format: ## format every source file
	@tools/deps lint
	@tools/wrap
	@git ls-files '*.c' '*.h' | xargs clang-format -i

sanitize: ## run the unit tests under the address, undefined and thread sanitizers
	@tools/deps build test fuzz
	@tools/sanitize

fuzz: ## run the fuzz targets for a minute; SECONDS_EACH=n for more
	@tools/deps build test fuzz
	@tools/fuzz $(or $(SECONDS_EACH),12)

soak: ## run a job on three hosts for MINUTES=10 with kills; check memory and every point; needs root
	@tools/deps build test
	@$(MAKE) --no-print-directory -s build
	@tools/soak "$(BUILD)" $(or $(MINUTES),10) $(SEED)

campaign: ## run the randomized tests with new seeds for MINUTES=10; SEED=n is the first seed
	@tools/deps build test
	@$(MAKE) --no-print-directory -s build
	@tools/campaign "$(BUILD)" $(or $(MINUTES),10) $(SEED)

dist: ## make tarballs and wheels for x86_64 and aarch64 in build-dist/; ARCH=x86_64 for one
	@tools/deps dist
	@tools/dist --to "$(BUILD)-dist" $(ARCH)

smoke: ## install and use these archives; SYSTEMS="buster bookworm:arm64" for bare systems, as root
	@tools/deps dist smoke
	@tools/smoke --archives "$(BUILD)-dist" $(SYSTEMS)

install: all ## install under PREFIX (/usr/local), libraries in its LIBDIR (lib); DESTDIR is honoured
	@$(MESON) configure "$(BUILD)" --prefix="$(PREFIX)" --libdir="$(LIBDIR)" -Dpython.platlibdir="$$(tools/python-folder "$(PREFIX)")" >/dev/null
	@$(MESON) install -C "$(BUILD)" --quiet
	@if [ "$(DESTDIR)" ]; then echo "installed under $(DESTDIR)$(PREFIX)"; else tools/installed "$(PREFIX)" "$(LIBDIR)"; fi

uninstall: ## remove what install has installed
	@tools/uninstall "$(BUILD)"

# Removes only folders that Meson made: a clone may hold a build-notes/ of its user.
clean: ## remove the build folders
	@for folder in "$(BUILD)" "$(BUILD)"-*; do [ ! -e "$$folder/meson-private" ] || rm -rf --one-file-system -- "$$folder"; done
	@[ ! -e "$(BUILD)-dist/.archives" ] || rm -rf --one-file-system -- "$(BUILD)-dist"

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
