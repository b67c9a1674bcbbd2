// Runs the demo of examples/shop from dist, in a process of its own: `node scripts/demo.mjs [--json] [--quiet] [--jobs N]
// [--seed N] [--file FILE]`.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../dist/examples/shop/main.js", import.meta.url));
const child = spawn(process.execPath, [program, ...process.argv.slice(2)], {
  stdio: ["inherit", "inherit", "inherit", "ipc"],
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
process.exitCode = await new Promise((resolve, reject) => {
  child.on("error", reject);
  child.on("exit", (code) => resolve(code ?? 1));
});
