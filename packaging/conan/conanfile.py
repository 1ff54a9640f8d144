"""reheap for Conan 2: conan create packaging/conan"""

import pathlib
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

ROOT = pathlib.Path("../..")  # from the recipe


class Reheap(ConanFile):
    name = "reheap"
    description = "A drop-in memory allocator"
    license = "MIT"
    topics = ("malloc", "allocator", "memory")
    package_type = "shared-library"  # the static libraries beside it have names of their own: reheap::static, …
    settings = "os", "arch", "compiler", "build_type"
    options = {"hardened": [True, False]}
    default_options = {"hardened": True}

    def set_version(self):
        header = load(self, pathlib.Path(self.recipe_folder, ROOT, "include/reheap/reheap.h"))
        self.version = ".".join(re.search(rf"#define RH_VERSION_{part} (\d+)", header)[1]
                                for part in ("MAJOR", "MINOR", "PATCH"))

    def export_sources(self):
        root = pathlib.Path(self.recipe_folder, ROOT)
        for part in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "integrations/*", "redirect/*", "src/*"):
            copy(self, part, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        if self.settings.os not in ("Linux", "Windows"):
            raise ConanInvalidConfiguration(f"reheap has no part for {self.settings.os}: Linux and Windows alone")
        if self.settings.compiler == "msvc":
            raise ConanInvalidConfiguration("reheap is compiled by GCC or Clang; what Microsoft's compiler links is "
                                            "made by Clang (compiler=clang)")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(REHEAP_TESTS=False, REHEAP_COMMAND=False, CMAKE_UNITY_BUILD=True,
                                         REHEAP_HARDENED=bool(self.options.hardened))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="products")

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, pathlib.Path(self.package_folder, "licenses"))
        rmdir(self, pathlib.Path(self.package_folder, "share"))

    def package_info(self):
        # find_package(reheap) finds the package's own file, which knows how each library is linked.
        self.cpp_info.set_property("cmake_find_mode", "none")
        for name in ("reheap", "core", *(["hardened"] if self.options.hardened else [])):
            part = self.cpp_info.components[name]
            part.builddirs = ["lib/cmake/reheap"]
            part.libs = ["reheap" if name == "reheap" else f"reheap-{name}"]
            part.system_libs = ["ntdll"] if self.settings.os == "Windows" else ["pthread", "dl"]
