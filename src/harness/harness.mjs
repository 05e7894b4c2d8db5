// SPDX-License-Identifier: Apache-2.0
// Calls solution(input) of candidate.mjs and prints what it gave, as JSON; argv[2]: output, input or both.

import fs from "node:fs";
import { createRequire } from "node:module";

// Standard output is for the answer alone: what the candidate prints goes to standard error.
process.stdout.write = process.stderr.write.bind(process.stderr);

const value = JSON.parse(fs.readFileSync(0, "utf8"));
const text = fs.readFileSync("candidate.mjs", "utf8");

async function load() {
  if (/^\s*(export|import)\b/m.test(text)) {
    const module = await import(`${process.cwd()}/candidate.mjs`);
    return module.solution ?? module.default;
  }
  const module = { exports: {} };
  const declared = new Function("module", "exports", "require",
    `${text}\n;return typeof solution === "function" ? solution : undefined;`);
  const found = declared(module, module.exports, createRequire(`${process.cwd()}/candidate.cjs`));
  return found ?? module.exports.solution ?? module.exports;
}

const solution = await load();
if (typeof solution !== "function") {
  console.error("candidate.mjs has no function solution");
  process.exit(1);
}
const output = (await solution(value)) ?? null;
const wanted = { output: { output }, input: { input: value }, both: { output, input: value } };
fs.writeSync(1, `${JSON.stringify(wanted[process.argv[2]])}\n`);
