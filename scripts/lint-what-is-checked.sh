#!/usr/bin/env bash
# For RUSTC_WORKSPACE_WRAPPER: Clippy's compiler for what Cargo only checks, the compiler itself for what it builds.
#
# Cargo tells artifacts of different wrappers from each other. Under this one a check, a build and the documentation share the macros, whose compiler is
# by far the longest unit; `cargo clippy` has a wrapper of its own, for which Cargo builds them once more.
compiler=$1
shift
case " $* " in
    *" --emit=dep-info,metadata "*) exec "$("$compiler" --print sysroot)/bin/clippy-driver" "$compiler" "$@" ;;
    *) exec "$compiler" "$@" ;;
esac
