"""A program that links what was packed, and says whether malloc is reheap's."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class ReheapTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # this folder is of the project's source
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for name, how in (("with_reheap", "serves"), ("with_static", "serves"), ("with_core", "beside")):
                self.run(f'"{os.path.join(self.cpp.build.bindir, name)}" {how}', env="conanrun")
