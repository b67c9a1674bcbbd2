// Lets tests import the library as it was just built: Node then loads its modules by itself, where vitest would translate
// and evaluate hundreds of sources in every test process. Only the test command does so, because it builds first; vitest
// by itself plays the tests on the sources as they are at that moment.
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vitest/config";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SOURCES = join(ROOT, "src");

/** The build that the test command has made of these sources, null for none. A copy of the tree has none, whoever runs it. */
export const BUILT = process.env["REDRIVE_TEST_BUILT"] === join(ROOT, "dist") ? join(ROOT, "dist") : null;

/** Leads imports of sources to what was built of them. */
export function builtImports(dist: string): Plugin {
  return {
    name: "built-imports",
    enforce: "pre",
    resolveId(wanted, importer) {
      if (importer === undefined || !/^\..*\.ts$/.test(wanted)) return null;
      const path = relative(SOURCES, resolve(dirname(importer), wanted));
      return path.startsWith("..") ? null : join(dist, path.replace(/\.ts$/, ".js"));
    },
  };
}

/** What vitest leaves to Node. */
export const EXTERNAL = { deps: { external: [/\/dist\/.*\.js$/] } };
