// `npm run prove -- browser`: every page at two widths, light and dark, judged by axe; and a hundred texts that try to become
// code, in every field that a program or a person can fill. Pictures go to bench/results/dashboard.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PermanentError } from "../../src/index.ts";
import { CHROMIUM, openPage, settled, startBrowser } from "./browser.ts";
import { openShop, playDay, type Shop } from "./scene.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PICTURES = fileURLToPath(new URL("../../bench/results/dashboard", import.meta.url));

/** Texts that would run where a page made markup of them. */
const VECTORS = [
  "<script>HIT</script>",
  "<img src=x onerror=HIT>",
  "<svg onload=HIT>",
  "<svg><script>HIT</script></svg>",
  "<iframe srcdoc='<script>HIT</script>'>",
  "<details open ontoggle=HIT>",
  "<a href=javascript:HIT>x</a>",
  "javascript:HIT",
  "<math><mtext></form><form><mglyph><style></math><img src onerror=HIT>",
  '"><script>HIT</script>',
  "'-HIT-'",
  "${HIT}",
  "{{constructor.constructor('HIT')()}}",
  "<body onload=HIT>",
  "<input autofocus onfocus=HIT>",
  "<video><source onerror=HIT>",
  "<object data=javascript:HIT>",
  "<base href=//evil.example/>",
  "<link rel=stylesheet href=//evil.example/x.css>",
  "<meta http-equiv=refresh content='0;url=//evil.example'>",
].flatMap((text) => {
  const code = text.replaceAll("HIT", "window.hit=1");
  return [code, code.toUpperCase(), `\u202e${code}`, `${code}\0\r\n`, encodeURIComponent(code)];
});

describe.skipIf(CHROMIUM === null)("every page in a browser", () => {
  let browser: Browser;
  let shop: Shop;
  let addresses: Readonly<Record<string, string>>;
  beforeAll(async () => {
    mkdirSync(PICTURES, { recursive: true });
    [browser, shop] = [await startBrowser(), await openShop()];
    const { dead, fingerprint } = await playDay(shop);
    const { redrive } = shop;
    const { id: plan } = await redrive.redrives.plan({ fingerprint });
    const bug = (await redrive.causes.list()).items.find(({ types }) => types.includes("thumbnail"));
    const trial = await redrive.redrives.plan({ fingerprint: bug?.fingerprint ?? "" });
    const { id: run } = await redrive.redrives.start(trial.id, { why: "trial" });
    await redrive.clock.advance("1m");
    const waiting = (await redrive.jobs.list({ state: "queued", type: "charge" })).items[0]?.id ?? "";
    const lists = "jobs dead-letters causes redrives services queues schedules workers events policies".split(" ");
    addresses = {
      overview: "",
      ...Object.fromEntries(lists.map((name) => [name, name])),
      job: `jobs/${dead}`,
      waiting: `jobs/${waiting}`,
      cause: `causes/${fingerprint}`,
      plan: `plans/${plan}`,
      redrive: `redrives/${run}`,
      repair: `repair/${dead}`,
      recipe: `recipe/${fingerprint}`,
      search: "search?q=charge",
    };
  });
  afterAll(async () => {
    await browser?.close();
    await shop?.close();
  });

  for (const width of [1_280, 390])
    for (const isDark of [false, true])
      it(`has nothing that axe finds at ${width}, ${isDark ? "dark" : "light"}`, { timeout: 600_000 }, async () => {
        const { page, wrong, close } = await openPage(browser, shop.url, { width, isDark });
        const found: string[] = [];
        for (const [name, address] of Object.entries(addresses)) {
          await page.goto(`${shop.url}#/${address}`);
          await settled(page);
          await page.waitForTimeout(500);
          await page.screenshot({ path: `${PICTURES}/${name}-${width}${isDark ? "-dark" : ""}.png`, fullPage: true });
          await page.evaluate(AXE);
          const problems = (await page.evaluate(
            "axe.run().then((r) => r.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target} ${n.failureSummary}`)))",
          )) as string[];
          found.push(...problems.slice(0, 5).map((problem) => `${name}: ${problem}`));
        }
        await close();
        expect([found, wrong]).toEqual([[], []]);
      });

  it("makes no code of a hundred texts in every field", { timeout: 900_000 }, async () => {
    const { redrive } = shop;
    for (const [n, text] of VECTORS.entries()) {
      const error = Object.assign(new PermanentError(text), { stack: `${text}\n    at ${text} (${text}:1:1)` });
      redrive.failNext("thumbnail", error);
      const clean = text.replaceAll(/[\0\r\n]/g, "").slice(0, 200);
      const { id } = await redrive.enqueue(
        "thumbnail",
        { text, [clean]: clean },
        { key: `${clean} ${n}`, tenant: clean },
      );
      await redrive.clock.advance("1s");
      if (n % 20 === 0) {
        const fingerprint = (await redrive.deadLetters.get(id)).job.failure?.fingerprint ?? "";
        await redrive.causes.note(fingerprint, clean, { why: clean });
        await redrive.causes.own(fingerprint, clean);
        await redrive.pause({ kind: "tenant", name: clean }, { reason: clean, why: clean });
      }
    }
    const { page, wrong, close } = await openPage(browser, shop.url);
    const dead = (await redrive.deadLetters.list({ type: "thumbnail", limit: 200 })).items;
    expect(dead.length).toBeGreaterThanOrEqual(100);
    const jobs = dead.flatMap(({ job }) => [`jobs/${job.id}`, `causes/${job.failure?.fingerprint}`]);
    for (const address of ["", "dead-letters", "causes", "queues", "events", "jobs?tab=payload", ...jobs]) {
      await page.goto(`${shop.url}#/${address}`);
      await settled(page);
    }
    expect(await page.evaluate("window.hit")).toBeUndefined();
    expect(wrong).toEqual([]);
    await close();
  });
});
