// The library as users get it: compiled from src as it is now. Threads and child processes need this, because Node 20
// runs no TypeScript; dist is left alone outside the test command, because it may be older than src. A build is kept under the hash of its
// sources, so that test processes share it, and goes when it is an hour old.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { BUILT } from "./built-imports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
// Below node_modules, so that packages are found from there and nothing is left in the tree.
const CACHE = join(ROOT, "node_modules", ".cache");
const PREFIX = "redrive-test-";
/** Where `dist` lies; the test command has just built it. */
let folder: string | null = BUILT === null ? null : dirname(BUILT);

/** The address of a module of the library by its path below dist, for child processes. */
export function builtModule(path: string): string {
  folder ??= build();
  return pathToFileURL(join(folder, "dist", path)).href;
}

/** A module of the library by its path below dist. */
export async function importBuilt<T>(path: string): Promise<T> {
  return (await import(/* @vite-ignore */ builtModule(path))) as T;
}

function build(): string {
  mkdirSync(CACHE, { recursive: true });
  removeOld();
  const built = join(CACHE, PREFIX + hashOfSources());
  if (existsSync(built)) return built;
  const fresh = mkdtempSync(join(CACHE, `${PREFIX}new-`));
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  const compile = (project: string, folder: string): string => {
    const args = [compiler, "-p", project, "--outDir", join(fresh, folder), "--declaration", "false", "--noCheck"];
    return spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" }).stdout;
  };
  // `npm run check` looks at the types.
  const stdout = compile("tsconfig.build.json", "dist") + compile("tsconfig.examples.json", "dist/examples");
  const bundled = spawnSync(process.execPath, [join(ROOT, "scripts/bundle.mjs"), join(fresh, "dist")], {
    encoding: "utf8",
  });
  if (bundled.status !== 0) throw new Error(`The threads of the build for tests were not bundled:\n${bundled.stderr}`);
  if (stdout.trim() !== "") process.stderr.write(`The build for tests has errors:\n${stdout}`);
  // The package finds its own parts by its name.
  cpSync(join(ROOT, "package.json"), join(fresh, "package.json"));
  try {
    renameSync(fresh, built);
  } catch {
    // Another process was quicker with the same build.
    rmSync(fresh, { recursive: true, force: true });
  }
  return built;
}

function hashOfSources(): string {
  const hash = createHash("sha256");
  for (const name of ["package.json", "scripts/bundle.mjs"]) hash.update(readFileSync(join(ROOT, name)));
  for (const folder of ["src", "examples/shop", "examples/kit"]) {
    const names = readdirSync(join(ROOT, folder), { recursive: true }) as string[];
    for (const name of names.filter((each) => each.endsWith(".ts")).toSorted())
      hash.update(name).update(readFileSync(join(ROOT, folder, name)));
  }
  return hash.digest("hex").slice(0, 16);
}

function removeOld(): void {
  const hourAgo = Date.now() - 3_600_000;
  for (const name of readdirSync(CACHE).filter((each) => each.startsWith(PREFIX))) {
    const path = join(CACHE, name);
    const old = (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY) < hourAgo;
    if (old) rmSync(path, { recursive: true, force: true });
  }
}
