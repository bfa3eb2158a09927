// Opens the page in a headless Chromium and prints what it says: node drive.mjs CASES CHROMIUM PACKAGES, the last being a folder in which
// npm has put playwright-core.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [cases, executablePath, packages] = process.argv.slice(2);
const { chromium } = createRequire(join(resolve(packages), "index.js"))("playwright-core");
const page = join(dirname(fileURLToPath(import.meta.url)), "page");
const files = {
  "/": [join(page, "index.html"), "text/html"],
  "/run.js": [join(page, "run.js"), "text/javascript"],
  "/cases.json": [cases, "application/json"],
};

// WebGPU is for secure contexts, which a file is not and this host is.
const server = createServer(async (request, response) => {
  const file = files[request.url];
  if (!file) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": file[1] }).end(await readFile(file[0]));
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));

const arguments_ = ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];
const browser = await chromium.launch({ executablePath, args: arguments_ });
let right = false;
try {
  const tab = await browser.newPage();
  await tab.goto(`http://127.0.0.1:${server.address().port}/`);
  await tab.waitForFunction("window.result !== undefined", undefined, { timeout: 120_000 });
  right = await tab.evaluate("window.result");
  console.log((await tab.textContent("#log")).trim());
} finally {
  await browser.close();
  server.close();
}
process.exitCode = right ? 0 : 1;
