//! A release is linked to fixed addresses. What the loader would otherwise relocate at the start
//! is memory of the keeper's own, which every clone of it has to copy. docs/operations.md says what
//! that costs.
//!
//! It has no tables for unwinding, either: it aborts. Those of musl's own start files are needed.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=release.ld");
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    if set("PROFILE") == "release" && set("CARGO_CFG_TARGET_OS") == "linux" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        if set("CARGO_CFG_TARGET_ENV") == "gnu" {
            let script = set("CARGO_MANIFEST_DIR") + "/release.ld";
            println!("cargo::rustc-link-arg-bins=-Wl,-T,{script}");
        }
    }
}
