#!/usr/bin/env node
"use strict";
// The command as npx and package.json's scripts start it. It becomes reheap's own where node can do that; else it waits,
// and ends as that ended.

const { spawn } = require("child_process");
const os = require("os");
const reheap = require("..");

function become(command, words) {
  process.execve(command, [command, ...words], process.env);
}

function waitFor(command, words) {
  let child;
  // What is sent to the whole group, as by Ctrl-C, the child has been sent too; what is sent to us alone goes on to it,
  // from the first moment that there is one.
  for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
  for (const signal of ["SIGTERM", "SIGHUP", "SIGUSR2"]) process.on(signal, () => child.kill(signal));
  child = spawn(command, words, { stdio: "inherit" });
  child.on("error", (error) => fail(`${command}: ${error.message}`));
  child.on("exit", (status, signal) => {
    if (!signal) process.exit(status);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    process.exit(128 + os.constants.signals[signal]); // where that did not end us
  });
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(127);
}

let command;
try {
  command = reheap.command();
} catch (error) {
  fail(error.message);
}
const words = process.argv.slice(2);
(process.execve && process.platform !== "win32" ? become : waitFor)(command, words);
