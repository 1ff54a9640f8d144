"use strict";
// Where the package for this system lies, and the files in it that a program is given.

const fs = require("fs");
const path = require("path");

/** The name of the package that has the programs for this system, whether it is installed or not. */
const packageName = () => `@reheap/${process.platform}-${process.arch}`;

/** The folder of that package. Throws, with what to do about it, where it is not installed. */
function folder() {
  const name = packageName();
  try {
    return path.dirname(require.resolve(`${name}/package.json`));
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    throw new Error(`reheap: ${name} is not installed. It comes with reheap unless npm leaves out optional packages ` +
                    `(--omit=optional) or this system has none (${process.platform}, ${process.arch}): ` +
                    "run npm install reheap again, on the system that will run it");
  }
}

function file(...parts) {
  const found = path.join(folder(), ...parts);
  if (!fs.existsSync(found)) throw new Error(`reheap: ${found} is missing: install the package again`);
  return found;
}

/** Path of the command: reheap, or reheap.exe. */
const command = () => file("bin", process.platform === "win32" ? "reheap.exe" : "reheap");

/** Path of the library that LD_PRELOAD takes, or of the DLL. hardened: the build that ends programs that misuse memory. */
function library({ hardened = false } = {}) {
  const name = hardened ? "reheap-hardened" : "reheap";
  return process.platform === "win32" ? file("bin", `${name}.dll`) : file("lib", `lib${name}.so`);
}

module.exports = { command, library }; // by names alone: else `import { library }` does not find them
