// The Node programs of the corpus in twelve builds: from source and compiled, bundled by four bundlers with and without
// dependencies, minified or not, as two releases, on four versions of Node.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const variant = (name, node, release, way, place, build) => ({ name, node, release, way, place, build });
/** Each variant has its version of Node, release, way of calling, folder on the server, and build. */
export const NODE_VARIANTS = [
  variant("source", 24, 1, "loop", "/srv/app-1", () => ["src/main.ts"]),
  variant("tsx", 22, 2, "queue", "/opt/shop/current", () => ["--import", "tsx", "src/main.ts"]),
  variant("tsc", 20, 1, "queue", "/usr/src/app", tsc),
  variant("tsc-next", 26, 2, "loop", "/srv/releases/20260114093000/shop", tsc),
  variant("esbuild", 24, 1, "queue", "/srv/app-2", esbuild({})),
  variant("esbuild-external", 22, 2, "timer", "/var/www/shop", esbuild({ packages: "external" })),
  variant("esbuild-minified", 20, 1, "loop", "/app", esbuild({ minify: true })),
  variant("esbuild-minified-external", 26, 2, "queue", "/srv/shop", esbuild({ minify: true, packages: "external" })),
  variant("esbuild-mapped", 26, 1, "timer", "/opt/app", esbuild({ sourcemap: true })),
  variant("rollup", 22, 1, "timer", "/data/deploy/7f3a91c/shop", rollup),
  variant("ncc", 24, 2, "loop", "/var/task", ncc),
  variant("swc", 20, 2, "queue", "/srv/apps/shop-next", swc),
];

/** Builds and runs one variant in the folder; the lines that it printed. */
export async function runNode(made, { programs, tools, folder, seed }) {
  const source = join(folder, "src");
  cpSync(join(programs, "node"), source, { recursive: true });
  symlinkSync(join(tools, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  if (made.release === 2) nextRelease(source);
  const args = await made.build({ folder, tools });
  const program = join(tools, "node_modules", `node-${made.node}`, "bin", "node");
  const env = { ...process.env, CORPUS_SEED: seed, CORPUS_WAY: made.way, CORPUS_FOLDER: join(folder, "data") };
  return run(program, args, { cwd: folder, env: { ...env, NODE_OPTIONS: "", NODE_NO_WARNINGS: "1" } })
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** Runs a program to its end; its output, or an error with what it said. */
export function run(program, args, options) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    timeout: 180_000,
    ...options,
  });
  if (status !== 0)
    throw new Error(`${program} ${args.join(" ")} ended with ${status}: ${error ?? (stderr || stdout)}`);
  return stdout;
}

const UNRELATED = `
/** How long something took, for the log. */
export function durationText(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 60 ? \`\${seconds} s\` : \`\${Math.floor(seconds / 60)} min \${seconds % 60} s\`;
}
`;

/** The next release: the services in another folder, and an unrelated function above all others. */
function nextRelease(source) {
  renameSync(join(source, "services"), join(source, "features"));
  const main = join(source, "main.ts");
  writeFileSync(main, readFileSync(main, "utf8").replaceAll("./services/", "./features/"));
  for (const name of readdirSync(join(source, "features"))) {
    const file = join(source, "features", name);
    writeFileSync(file, readFileSync(file, "utf8").replace(/(\nimport [^\n]*;\n)\n/, `$1${UNRELATED}\n`));
  }
}

function tsc({ folder, tools }) {
  const flags =
    "--target es2022 --module nodenext --noCheck --rewriteRelativeImportExtensions --outDir dist --rootDir src";
  run(process.execPath, [join(tools, "node_modules/typescript/bin/tsc"), ...flags.split(" "), "src/main.ts"], {
    cwd: folder,
  });
  return ["dist/main.js"];
}

function esbuild(options) {
  return async ({ folder, tools }) => {
    const { build } = createRequire(join(tools, "package.json"))("esbuild");
    await build({
      absWorkingDir: folder,
      entryPoints: ["src/main.ts"],
      bundle: true,
      platform: "node",
      target: "node20",
      format: "cjs",
      banner: { js: '"use strict";' },
      outfile: "dist/server.cjs",
      logLevel: "error",
      ...options,
    });
    return [...(options.sourcemap ? ["--enable-source-maps"] : []), "dist/server.cjs"];
  };
}

async function rollup(made) {
  tsc(made);
  const load = createRequire(join(made.tools, "package.json"));
  const bundle = await load("rollup").rollup({
    input: join(made.folder, "dist/main.js"),
    plugins: [
      load("@rollup/plugin-node-resolve").default({ exportConditions: ["node"], preferBuiltins: true }),
      load("@rollup/plugin-commonjs").default(),
      load("@rollup/plugin-json").default(),
    ],
    onwarn() {},
  });
  await bundle.write({ file: join(made.folder, "build/server.mjs"), format: "es", inlineDynamicImports: true });
  await bundle.close();
  return ["build/server.mjs"];
}

function ncc(made) {
  tsc(made);
  const cli = join(made.tools, "node_modules/@vercel/ncc/dist/ncc/cli.js");
  run(process.execPath, [cli, "build", "dist/main.js", "-o", "bundle", "--no-cache", "-q"], { cwd: made.folder });
  return [
    join(
      "bundle",
      readdirSync(join(made.folder, "bundle")).find((name) => /^index\.m?js$/.test(name)),
    ),
  ];
}

/** CommonJS without `async`, as projects with old targets have it: each await is a step of a generator. */
function swc({ folder, tools }) {
  const { transformSync } = createRequire(join(tools, "package.json"))("@swc/core");
  const options = {
    swcrc: false,
    jsc: { parser: { syntax: "typescript" }, target: "es2015" },
    module: { type: "commonjs" },
  };
  for (const name of readdirSync(join(folder, "src"), { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts")) continue;
    const text = readFileSync(join(folder, "src", name), "utf8").replace(/(from "\.[^"]*)\.ts"/g, '$1.js"');
    mkdirSync(join(folder, "lib", name, ".."), { recursive: true });
    writeFileSync(join(folder, "lib", name.replace(/ts$/, "js")), transformSync(text, options).code);
  }
  writeFileSync(join(folder, "lib/package.json"), '{ "type": "commonjs" }');
  return ["lib/main.js"];
}
