//! Compiles the allocator, which is one C++ file, without a C++ library.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=DOCS_RS");
    let source = source();
    let target = Target::asked();
    if env::var_os("DOCS_RS").is_some() {
        return; // only the documentation is made, by whatever compiler there is
    }
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++20")
        .cpp_link_stdlib(None)
        .include(&source)
        .file(source.join("reheap.cpp"))
        .define("REHEAP_BUILD", "\"crate\"")
        // What an unoptimised allocator costs says nothing about the program.
        .opt_level(2)
        .warnings(false);
    if env::var_os("CARGO_FEATURE_HARDENED").is_some() {
        build.define("REHEAP_HARDENED", None);
    }
    if target.env == "msvc" {
        // Microsoft's compiler cannot compile it; Clang in its place can.
        if !target.has_compiler_of_its_own() {
            build.compiler("clang-cl");
        }
    } else {
        build.flag("-fno-exceptions").flag("-fno-rtti");
        // Rust's linker reads no GCC's -flto, which distributions have in CXXFLAGS: leave code for it beside that.
        build.flag_if_supported("-ffat-lto-objects");
    }
    build.compile("reheap");
    target.link_libraries();
    println!("cargo:include={}", source.display());
}

/// The folder with reheap.cpp and reheap.h: the crate's own, or, in a checkout of the project, one made from its source
/// as it is now.
fn source() -> PathBuf {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let project = here.join("../..");
    let script = project.join("tools/amalgamate.py");
    if script.is_file() {
        return amalgamate(&project, &script);
    }
    let packed = here.join("native");
    if !packed.join("reheap.cpp").is_file() {
        panic!(
            "{} is not there, nor a checkout of reheap around this crate: \
             in one, run tools/amalgamate.py packaging/rust/native",
            packed.join("reheap.cpp").display()
        );
    }
    println!("cargo:rerun-if-changed={}", packed.display());
    packed
}

fn amalgamate(project: &Path, script: &Path) -> PathBuf {
    for part in ["src", "include", "cmake/Sources.cmake", "tools"] {
        println!("cargo:rerun-if-changed={}", project.join(part).display());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("native");
    let python = if cfg!(windows) { "python" } else { "python3" };
    match Command::new(python).arg(script).arg(&out).status() {
        Ok(status) if status.success() => out,
        Ok(status) => panic!("{} failed: {}", script.display(), status),
        Err(error) => panic!("{python}, which {} needs, does not start: {error}", script.display()),
    }
}

/// What is compiled for.
struct Target {
    triple: String,
    os: String,
    env: String,
}

impl Target {
    fn asked() -> Target {
        let of = |name: &str| env::var(name).unwrap_or_default();
        let target = Target { triple: of("TARGET"), os: of("CARGO_CFG_TARGET_OS"), env: of("CARGO_CFG_TARGET_ENV") };
        let processor = of("CARGO_CFG_TARGET_ARCH");
        if !matches!(target.os.as_str(), "linux" | "windows")
            || !matches!(processor.as_str(), "x86_64" | "x86" | "aarch64")
        {
            panic!("reheap runs on Linux and Windows, on x86-64, i686 and arm64; not on {}", target.triple);
        }
        target
    }

    /// Whether the user has named one, as the crate cc asks for it.
    fn has_compiler_of_its_own(&self) -> bool {
        let with_underscores = self.triple.replace('-', "_");
        [format!("CXX_{}", self.triple), format!("CXX_{with_underscores}"), "TARGET_CXX".into(), "CXX".into()]
            .iter()
            .any(|name| env::var_os(name).is_some())
    }

    fn link_libraries(&self) {
        match (self.os.as_str(), self.env.as_str()) {
            ("windows", _) => println!("cargo:rustc-link-lib=ntdll"),
            (_, "gnu") => {
                println!("cargo:rustc-link-lib=pthread");
                println!("cargo:rustc-link-lib=dl");
            }
            _ => {}
        }
    }
}
