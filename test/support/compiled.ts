// TypeScript compiled by the compiler users have, for what vitest's own transform leaves as it is (standard decorators)
// and for code that must also type-check (documentation). Modules of src come along, compiled from src as it is now.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CACHE = join(ROOT, "node_modules", ".cache");

/** A folder for sources and what is compiled of them; below node_modules, so that nothing is left in the tree. */
export interface Workshop {
  readonly folder: string;
  /** Writes a source that can import `redrive`; returns its path. */
  write(name: string, text: string): string;
  /** Compiles these files; returns what the compiler said about them, and about nothing else. */
  compile(files: readonly string[]): string[];
  /** Imports what became of a file. */
  load<T>(file: string): Promise<T>;
  remove(): void;
}

/** An empty workshop. */
export function openWorkshop(): Workshop {
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, "redrive-compiled-"));
  const entry = relative(folder, join(ROOT, "src/index.ts"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  return {
    folder,
    write(name, text) {
      const path = join(folder, name);
      const parts = {
        "": "index.ts",
        "/testing": "testing/index.ts",
        "/postgres": "store/postgres/index.ts",
        "/http": "http/index.ts",
        "/client": "http/client.ts",
      };
      let own = text;
      for (const [part, file] of Object.entries(parts))
        own = own.replaceAll(`from "redrive${part}"`, `from "${join(dirname(entry), file)}"`);
      writeFileSync(path, own);
      return path;
    },
    compile(files) {
      const compilerOptions = { noEmit: false, noUnusedLocals: false, rootDir: ROOT, outDir: join(folder, "out") };
      const config = { extends: join(ROOT, "tsconfig.json"), compilerOptions, files, include: [] };
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
      const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
      const args = [compiler, "-p", folder, "--pretty", "false"];
      const { stdout } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" });
      const names = files.map((file) => relative(ROOT, file));
      return stdout.split("\n").filter((line) => names.some((name) => line.startsWith(name)));
    },
    load: (file) => {
      const built = join(folder, "out", relative(ROOT, file).replace(/\.ts$/, ".js"));
      return import(/* @vite-ignore */ pathToFileURL(built).href);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
