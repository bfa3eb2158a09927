#!/usr/bin/env node
// Compiles every .wgsl below a folder that browsers are to read with Tint, which Chromium and Dawn use (scripts/setup-tools.sh unpacks it).
//
// usage: scripts/check-wgsl.mjs DIR
//
// A text of naga's dialect, which the JSON beside it says, is passed over. Prints each failure with its message and a count; fails if one
// file fails or if there is none to check.

import { readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [folder] = process.argv.slice(2);
if (!folder) {
  console.error("usage: scripts/check-wgsl.mjs DIR");
  process.exit(2);
}
const tools = join(dirname(fileURLToPath(import.meta.url)), "..", ".tools", "web");
const { create, globals } = await import(join(tools, "node_modules", "webgpu", "index.js"));
Object.assign(globalThis, globals);

// Dawn without any GPU: it compiles, and runs nothing. It ends with its first object, which is therefore held.
const gpu = create(["backend=null"]);
const adapter = await gpu.requestAdapter();
const device = await adapter.requestDevice({ requiredFeatures: ["shader-f16", "subgroups"] });

const below = (path) => (statSync(path).isDirectory() ? readdirSync(path).flatMap((name) => below(join(path, name))) : [path]);
const files = below(folder);
const descriptions = files.filter((file) => file.endsWith(".json")).sort();
let [passed, failed] = [0, 0];
for (const description of descriptions) {
  const { variants } = JSON.parse(readFileSync(description, "utf8"));
  for (const { target, read_by, features, entry_point, file } of variants) {
    if (target !== "wgsl" || read_by === "naga") continue;
    const path = join(dirname(description), file);
    device.pushErrorScope("validation");
    const module = device.createShaderModule({ code: readFileSync(path, "utf8") });
    const { messages } = await module.getCompilationInfo();
    const errors = messages.filter((message) => message.type === "error").map((message) => `${message.lineNum}: ${message.message}`);
    // The pipeline judges what the entry point uses: bindings, workgroup memory, uniformity. Dawn without a GPU has no larger workgroups than every browser, so that of variants with the feature `large` Tint judges the module alone.
    if (errors.length === 0 && !features.includes("large")) device.createComputePipeline({ layout: "auto", compute: { module, entryPoint: entry_point } });
    const refusal = await device.popErrorScope();
    if (errors.length === 0 && refusal) errors.push(refusal.message);
    if (errors.length === 0) {
      passed += 1;
    } else {
      failed += 1;
      console.log(`check-wgsl: ${path}\n    ${errors.join("\n    ")}`);
    }
  }
}
console.log(`check-wgsl: ${passed} passed, ${failed} failed (Tint)`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
