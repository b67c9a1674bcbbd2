// `npm run prove -- chaos`: compiles the library and the actors of test/chaos together into a folder of their own,
// because Node 20 runs no TypeScript, and starts the conductor there. In that copy, and only there, the one place that
// opens stores hands out recorded ones, so that even the child process of a suspect writes its history.

import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/ready.mjs";

/** Runs chaos with these arguments; resolves with its exit code. */
export async function chaos(args) {
  const cache = join(root, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  // Below node_modules, so that packages are found from there and nothing is left in the tree.
  const folder = mkdtempSync(join(cache, "redrive-chaos-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  compileChaos(folder);
  const child = spawn(process.execPath, [join(folder, "test/chaos/main.js"), ...args], { stdio: "inherit" });
  // The conductor ends its actors before it ends itself, so it is asked and waited for.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill("SIGTERM"));
  return new Promise((resolve) => {
    child.on("close", (code) => resolve(code ?? 1));
  });
}

/** Compiles everything into the folder, without a look at types, which `npm run check` has; the conductor is `test/chaos/main.js` there. */
export function compileChaos(folder) {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const args = [compiler, "-p", "test/chaos/tsconfig.json", "--outDir", folder];
  const { stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  if (stdout.trim() !== "") process.stderr.write(`The build for chaos has errors:\n${stdout}`);
  // The compiler copies no JavaScript.
  cpSync(join(root, "scripts/guardian.mjs"), join(folder, "scripts/guardian.mjs"));
  // Job files find the package by its name, which here is the copy.
  const exports = { ".": "./src/index.js", "./package.json": "./package.json" };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "redrive", type: "module", exports }));
  const opener = join(folder, "src/open-store.js");
  if (!existsSync(opener)) throw new Error("src/open-store.ts is gone; say in test/chaos where stores are opened.");
  writeFileSync(opener, 'export { openStore } from "../test/chaos/open-recorded.js";\n');
}
