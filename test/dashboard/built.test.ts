// The dashboard as it was built: small, without code in markup, and served under any prefix with a policy that lets no text
// become code.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { httpHandler } from "../../src/http/index.ts";
import { createTestRedrive } from "../../src/testing/index.ts";

const BUILT = fileURLToPath(new URL("../../dist/dashboard", import.meta.url));
const SOURCES = fileURLToPath(new URL("../../dashboard", import.meta.url));

/** Bytes after gzip, at most. */
const BUDGETS = { "app.js": 36_864, "more.js": 12_288, "plot.js": 24_576, "app.css": 6_144 };

describe.skipIf(!existsSync(BUILT))("the built dashboard", () => {
  const sizes = new Map(
    readdirSync(BUILT).map((name) => [
      name.replace(/-[0-9a-f]+/, ""),
      gzipSync(readFileSync(`${BUILT}/${name}`), { level: 9 }).length,
    ]),
  );
  for (const [name, most] of Object.entries(BUDGETS))
    it(`has ${name} within ${most} bytes`, () => expect(sizes.get(name)).toBeLessThanOrEqual(most));
  it("has nothing else but a page and an icon", () => {
    expect([...sizes.keys()].toSorted()).toEqual([...Object.keys(BUDGETS), "icon.svg", "index.html"].toSorted());
  });

  it("is served under a prefix, with a policy that lets no text become code", async () => {
    await using redrive = await createTestRedrive();
    const handler = httpHandler(redrive, { auth: () => null, dashboard: BUILT, basePath: "/ops/jobs" });
    const ask = (path: string) => handler(new Request(`http://h/ops/jobs${path}`));
    const page = await ask("/");
    const html = await page.text();
    expect([page.status, html.includes('<script type="module" src="app-')]).toEqual([200, true]);
    expect(page.headers.get("content-security-policy")).toContain("trusted-types 'none'");
    for (const [, path = ""] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
      const answer = await ask(`/${path}`);
      expect([path, answer.status]).toEqual([path, 200]);
      if (path.includes("-")) expect(answer.headers.get("cache-control")).toContain("immutable");
    }
  });
});

describe("the sources of the dashboard", () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));
  const texts = files.map((name) => ({ name, text: readFileSync(`${SOURCES}/${name}`, "utf8") }));
  it("make no markup and no code from text", () => {
    const bad =
      /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(|new Function|setAttribute\("style|localStorage/;
    expect(texts.filter(({ text }) => bad.test(text)).map(({ name }) => name)).toEqual([]);
  });
  it("know the library by its client alone", () => {
    const reaches = texts.flatMap(({ text }) =>
      [...text.matchAll(/from "((?:\.\.\/)+src\/[^"]+)"/g)].map(([, path]) => path),
    );
    expect([...new Set(reaches.map((path) => path?.replaceAll("../", "")))]).toEqual(["src/http/client.ts"]);
  });
  it("open with a comment, and stay short", () => {
    expect(texts.filter(({ text }) => !text.startsWith("//")).map(({ name }) => name)).toEqual([]);
    expect(texts.filter(({ text }) => text.trimEnd().split("\n").length > 400).map(({ name }) => name)).toEqual([]);
  });
});
