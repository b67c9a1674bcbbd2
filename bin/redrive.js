#!/usr/bin/env node
// The entry of the command line; everything else is in src/cli.
import { existsSync } from "node:fs";

const program = new URL("../dist/cli/process.js", import.meta.url);
if (existsSync(program)) {
  const { main } = await import(program.href);
  await main();
} else {
  process.stderr.write("error: Redrive is not built yet. Run `npm run build` in its folder, then try again.\n");
  process.exitCode = 70;
}
