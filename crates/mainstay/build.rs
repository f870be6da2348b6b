//! A release is linked to fixed addresses. What the loader would otherwise relocate at the start
//! is memory of the keeper's own, which every clone of it has to copy. docs/operations.md says what
//! that costs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    if set("PROFILE") == "release" && set("CARGO_CFG_TARGET_OS") == "linux" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
