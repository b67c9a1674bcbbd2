// `node scripts/dashboard.mjs DIST`: builds the dashboard into DIST/dashboard: one script, the plots as a chunk of their own,
// one style sheet, a page and an icon. The names of scripts and styles carry a hash, so that browsers may keep them.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { rolldown } from "rolldown";
import { root } from "./ready.mjs";

const [dist = "dist"] = process.argv.slice(2);
const from = join(root, "dashboard");
const out = join(resolve(dist), "dashboard");

/** Without comments and needless spaces. The style sheet has no strings with spaces in them but names of fonts. */
function smaller(css) {
  return css
    .replaceAll(/\/\*[\s\S]*?\*\//g, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/\s*([{};,>])\s*/g, "$1")
    .replaceAll(/:\s+/g, ":")
    .replaceAll(";}", "}")
    .trim();
}

mkdirSync(out, { recursive: true });
for (const name of readdirSync(out)) rmSync(join(out, name));

const bundle = await rolldown({
  input: join(from, "main.tsx"),
  platform: "browser",
  tsconfig: join(from, "tsconfig.json"),
  transform: { define: { "process.env.NODE_ENV": '"production"' } },
});
const { output } = await bundle.write({
  dir: out,
  format: "esm",
  minify: true,
  comments: false,
  hashCharacters: "hex",
  entryFileNames: "app-[hash].js",
  chunkFileNames: "[name]-[hash].js",
});
await bundle.close();
const app = output.find((each) => each.type === "chunk" && each.isEntry).fileName;

const plotStyle = readFileSync(createRequire(import.meta.url).resolve("uplot/dist/uPlot.min.css"), "utf8");
const css = smaller(readFileSync(join(from, "style.css"), "utf8") + plotStyle);
const style = `app-${createHash("sha256").update(css).digest("hex").slice(0, 8)}.css`;
writeFileSync(join(out, style), `${css}\n`);
writeFileSync(join(out, "icon.svg"), readFileSync(join(from, "icon.svg")));
const page = readFileSync(join(from, "index.html"), "utf8");
writeFileSync(join(out, "index.html"), page.replace("{app}", app).replace("{style}", style));
