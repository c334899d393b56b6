# Two commands do all the set-up there is: `make demo` and `make test`.
# Runs mostly wait: more of them than cores go on at once.
export RUST_TEST_THREADS ?= 5

.PHONY: demo test lint nightly bench setup

# Needs cargo and a C compiler, nothing else: the embedded backends alone.
demo:
	cargo run --no-default-features -- demo

test: setup
	cargo test --workspace

# Long proofs: many more random histories, every planted bug and clean run again and again.
nightly: setup
	cargo test --workspace --release -- --include-ignored

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --no-default-features -- -D warnings

bench: setup
	cargo bench --bench recording
	cargo bench --bench time_to_finding

setup:
	scripts/setup
