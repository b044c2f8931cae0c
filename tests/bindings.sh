#!/usr/bin/env bash
# Bindings against what was installed: bindings.sh rust|go ROOT PREFIX OUT
#
# Exit status 77, SKIPPED, without the toolchain. Nothing is fetched.
set -euo pipefail
kind=$1 root=$2 prefix=$3 out=$4
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig SDC_CACHE=off
rm -rf "$out"
mkdir -p "$out"
case $kind in
rust)
    cargo --version >/dev/null 2>&1 || exit 77
    cp -r "$root/runtime/rust/." "$out"
    cd "$out"
    RUSTFLAGS=-Dwarnings cargo build -q --offline --example add
    ./target/debug/examples/add >printed
    grep -qx '999 + 1 = 1000' printed
    grep -q 'SDC_ERROR_CHECK: add.tk:13:5: error: store outside' printed
    ;;
go)
    go version >/dev/null 2>&1 || exit 77
    cp -r "$root/runtime/go/." "$out"
    cd "$out"
    export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOCACHE=$out/cache
    # Pinned memory is Go 1.21.
    go version | grep -qE 'go1\.(1[0-9]|20)( |\.)' && exit 77
    go vet ./...
    LD_LIBRARY_PATH=$prefix/lib go test ./...
    ;;
esac
