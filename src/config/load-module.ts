// Loads a user's module, TypeScript or JavaScript: with Node itself where it can, with jiti where it cannot. A module
// that finds no `redrive` installed gets this one, so that a file in an empty folder works.
import { fieldsFrom } from "../core/options.ts";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { pathToFileURL } from "node:url";

const TYPESCRIPT = [".ts", ".mts", ".cts"];
const own = createRequire(import.meta.url);

/** Errors which mean that Node cannot load this kind of file, not that the file is wrong. */
const BEYOND_NODE = ["ERR_UNKNOWN_FILE_EXTENSION", "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX", "ERR_MODULE_NOT_FOUND"];

/** The exports of the module at an absolute path. */
export async function loadModule(path: string): Promise<Record<string, unknown>> {
  const isTypeScript = TYPESCRIPT.includes(extname(path));
  const nodeReadsIt = !isTypeScript || (nodeReadsTypeScript() && isOfModulePackage(path));
  const finds = findsRedrive(path);
  if (!nodeReadsIt || finds === "nothing") return loadTransformed(path, finds);
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (!isTypeScript || !BEYOND_NODE.includes(code)) throw error;
    return loadTransformed(path, finds);
  }
}

function nodeReadsTypeScript(): boolean {
  return Boolean((process.features as { typescript?: unknown }).typescript);
}

/** True where the nearest package.json declares its files as modules; `npm init` does not. */
function isOfModulePackage(path: string): boolean {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const type = packageType(join(folder, "package.json"));
    if (type !== null || folder === dirname(folder)) return type === "module";
  }
}

/** The `type` of a package.json, "" where it has none, or null where there is no package.json. */
function packageType(file: string): string | null {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return null;
  }
  const { type } = fieldsFrom(text);
  return typeof type === "string" ? type : "";
}

/** Which `redrive` an import in this file would find. */
function findsRedrive(path: string): "ours" | "another" | "nothing" {
  try {
    const found = createRequire(path).resolve("redrive");
    return found === own.resolve("redrive") ? "ours" : "another";
  } catch {
    return "nothing";
  }
}

async function loadTransformed(path: string, finds: ReturnType<typeof findsRedrive>): Promise<Record<string, unknown>> {
  const { createJiti } = await import("jiti");
  const virtualModules = finds === "another" ? {} : await ourModules();
  // Without a cache on disk: in a folder that others can write to, they could choose what we run.
  const jiti = createJiti(pathToFileURL(path).href, { fsCache: false, virtualModules });
  return jiti.import<Record<string, unknown>>(path);
}

/** Subpaths that no job file needs: a server loads packages that jobs must not wait for. */
const LEFT_OUT = ["./package.json", "./http"];

/** `redrive` and its subpaths as package.json names them; one whose driver is not installed is left out. */
async function ourModules(): Promise<Record<string, unknown>> {
  const { exports } = own("redrive/package.json") as { readonly exports: Readonly<Record<string, unknown>> };
  const modules: Record<string, unknown> = {};
  for (const subpath of Object.keys(exports).filter((each) => !LEFT_OUT.includes(each))) {
    const name = `redrive${subpath.slice(1)}`;
    const module: unknown = await import(pathToFileURL(own.resolve(name)).href).catch(() => null);
    if (module !== null) modules[name] = module;
  }
  return modules;
}
