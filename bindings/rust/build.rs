//! Finds libsonde.a: in SONDE_LIB_DIR, else in the folder that pkg-config names for sonde. The
//! library is linked statically, so that the program also runs on nodes without sonde.

use std::path::PathBuf;
use std::process::Command;

fn installed() -> Option<PathBuf> {
    let found = Command::new("pkg-config")
        .args(["--variable=libdir", "sonde"])
        .output()
        .ok()?;
    let folder = String::from_utf8(found.stdout).ok()?;
    (found.status.success() && !folder.trim().is_empty()).then(|| folder.trim().into())
}

fn main() {
    println!("cargo:rerun-if-env-changed=SONDE_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let folder = match std::env::var_os("SONDE_LIB_DIR")
        .map(PathBuf::from)
        .or_else(installed)
    {
        Some(folder) => folder,
        None => panic!(
            "libsonde.a not found: set SONDE_LIB_DIR to its folder, or PKG_CONFIG_PATH to the \
             folder of sonde.pc"
        ),
    };
    let library = folder.join("libsonde.a");
    if !library.exists() {
        panic!("{} does not exist: see SONDE_LIB_DIR", library.display());
    }
    println!("cargo:rerun-if-changed={}", library.display());
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static=sonde");
}
