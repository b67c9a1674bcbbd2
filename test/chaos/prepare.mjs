// `npm run prove -- chaos`: compiles the library and the actors of test/chaos together into a folder of their own,
// because Node 20 runs no TypeScript, and starts the conductor there. In that copy, and only there, the one place that
// opens stores hands out recorded ones, so that even the child process of a suspect writes its history, and stores read how
// far their clock was put ahead (store-clock.ts).

import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

/** Where stores read their time, and what they read in the copy. */
const CLOCKS = [
  {
    file: "src/store/postgres/context.js",
    was: "statement_timestamp()) * 1000)::bigint)",
    is: "statement_timestamp()) * 1000)::bigint + (select ahead from public.chaos_clock))",
  },
  {
    file: "src/store/sqlite/thread.js",
    was: "const { now: clock, random } = realSystem;",
    is: "const { random } = realSystem; const clock = storeNow;",
    head: 'import { storeNow } from "../../../test/chaos/store-clock.js";\n',
  },
];

function replace(path, was, is, head = "") {
  const code = readFileSync(path, "utf8");
  if (code.split(was).length !== 2)
    throw new Error(`${path} no longer holds ${was}; say in test/chaos where stores read time.`);
  writeFileSync(path, head + code.replace(was, is));
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
  for (const { file, was, is, head } of CLOCKS) replace(join(folder, file), was, is, head);
  const bundled = spawnSync(process.execPath, [join(root, "scripts/bundle.mjs"), join(folder, "src")], {
    encoding: "utf8",
  });
  if (bundled.status !== 0) throw new Error(`The threads of the build for chaos were not bundled:\n${bundled.stderr}`);
}
