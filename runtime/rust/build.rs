//! Finds libsdc by pkg-config; a program that is linked with it finds it there again.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let found = Command::new("pkg-config")
        .args(["--variable=libdir", "sdc"])
        .output()
        .expect("pkg-config cannot be run");
    let dir = String::from_utf8_lossy(&found.stdout).trim().to_string();
    if !found.status.success() || dir.is_empty() {
        panic!("libsdc is not found: set PKG_CONFIG_PATH to its lib/pkgconfig");
    }
    println!("cargo:rustc-link-search=native={dir}");
    println!("cargo:rustc-link-lib=dylib=sdc");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{dir}");
}
