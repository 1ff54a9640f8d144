// Work that allocates, and says the same in every run.
import { createHash } from "node:crypto";
import { deflateSync, inflateSync } from "node:zlib";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

const TIMES = 60, WORKERS = 2;

function numbers(seed) {
  let state = seed >>> 0;
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

function document(chance, depth) {
  if (depth === 0) return [null, true, chance(1e9) / 7, "x".repeat(chance(300)), `é${chance(1000)}`][chance(5)];
  const inner = Array.from({ length: chance(8) }, () => document(chance, depth - 1));
  return chance(2) ? inner : Object.fromEntries(inner.map((value, at) => [`key ${at}`, value]));
}

const digest = (data) => createHash("sha256").update(data).digest("hex");

function byJson(seed) {
  const text = JSON.stringify(document(numbers(seed), 5), null, 1);
  if (JSON.stringify(JSON.parse(text), null, 1) !== text) throw new Error("JSON");
  return text;
}

function byExpressions(seed) {
  const chance = numbers(seed);
  const words = Array.from({ length: 2000 }, () => `${"abc"[chance(3)]}${chance(1000)}-${"z".repeat(chance(20))}`);
  return words.join(" ").replace(/(?<letter>[ab])(\d+)-(z{3,})/g, (...found) => `<${found[1]}${found[3].length}>`);
}

function byMaps(seed) {
  const chance = numbers(seed), map = new Map();
  for (let at = 0; at < 20000; ++at) map.set(`key ${chance(5000)}`, { at, text: `${at}`.padStart(chance(40)) });
  for (const key of [...map.keys()]) if (chance(3) === 0) map.delete(key);
  return JSON.stringify([...map].sort(([one], [other]) => (one < other ? -1 : 1)));
}

function byCompression(seed) {
  const text = byMaps(seed), packed = deflateSync(text, { level: 9 });
  if (inflateSync(packed).toString() !== text) throw new Error("zlib");
  return packed;
}

const all = (seed) => digest(byJson(seed) + byExpressions(seed) + byMaps(seed)) + digest(byCompression(seed));

if (!isMainThread) {
  parentPort.postMessage(all(workerData));
} else {
  const texts = Array.from({ length: TIMES }, (_, seed) => byJson(seed));
  console.log("json", TIMES, "times", digest(texts.join("")));
  console.log("all", all(1));
  console.log("number", digest((3n ** 20000n).toString()));
  for (let seed = 0; seed < WORKERS; ++seed) {
    const worker = new Worker(process.argv[1], { workerData: seed });
    console.log("worker", seed, await new Promise((done) => worker.on("message", done)));
  }
}
