// The whole recovery as a person does it, in a real browser: from the overview to the end of the redrive without typing an
// address, in at most twelve clicks, each on a link of the text or on the page's main button. The shop's clock is turned by
// the test. `npm run prove -- browser` looks at every page.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHROMIUM, openPage, settled, startBrowser } from "./browser.ts";
import { BUILT, openShop, playRefusals, type Shop } from "./scene.ts";

const isMissing = CHROMIUM === null || !existsSync(join(BUILT, "index.html"));

describe.skipIf(isMissing)("the dashboard in a browser", () => {
  let browser: Browser;
  let shop: Shop;
  beforeAll(async () => {
    [browser, shop] = [await startBrowser(), await openShop()];
  });
  afterAll(async () => {
    await browser?.close();
    await shop?.close();
  });

  it("leads from the overview to the redrive that completes, in twelve clicks", async () => {
    const fingerprint = await playRefusals(shop);
    const { page, wrong, close } = await openPage(browser, shop.url);
    let clicks = 0;
    const click = async (selector: string): Promise<void> => {
      clicks += 1;
      await page.locator(selector).first().click();
    };
    const shows = (text: string | RegExp) => page.getByText(text).first().waitFor();

    await page.goto(shop.url);
    await click("a:has-text('currency: expected three letters')");
    await shows("Triage:");
    await click("button:has-text('Plan redrive')");
    await shows("12 dead letters → 12 to send");
    await shows("5 good: at most 45.1 % failing");
    await page.getByLabel("Why, for the event log").fill("the bank says it is back");
    await click("button:has-text('Start 12 of 12 with canary')");
    await shows("canary 5");
    await shop.redrive.clock.advance("1m");
    await shows(/Stopped by itself:/);
    await shows(/failed the same way/);
    await click("a:has-text('Look at the job')");
    await shows("Newest error");
    await click("a:text-is('Repair')");
    await page.getByLabel("Payload").waitFor();
    await click("a:has-text('by a recipe')");
    await page.getByLabel("Recipe").fill('{ "currency": "EUR" }');
    await click("button:has-text('Look what it would do')");
    await click("button:has-text('Repair 12 of 12')");
    await click("form button:has-text('Repair 12 of 12')");
    await shows(/12 repaired/);
    await click("button:has-text('Plan redrive')");
    await click("button:has-text('Start 12 of 12')");
    await shows("canary 5");
    await shop.redrive.clock.advance("5m");
    await shows("Completed.");
    await click("nav a:has-text('Events')");
    await shows("redrive.started");
    await shows("the bank says it is back");

    expect(clicks).toBeLessThanOrEqual(12);
    expect(await shop.redrive.deadLetters.list({ fingerprint, redriven: false })).toMatchObject({ items: [] });
    expect(wrong).toEqual([]);
    await close();
  });

  it("shows what a type refuses at its line, and keeps a number that no program can hold", async () => {
    const text = '{"order":90071992547409931,"amount":5,"currency":"euro"}';
    const { id } = await shop.redrive.enqueueText("charge", text);
    await shop.redrive.clock.advance("1s");
    const { page, wrong, close } = await openPage(browser, shop.url);
    await page.goto(`${shop.url}#/repair/${id}`);
    const payload = page.getByLabel("Payload");
    await payload.fill((await payload.inputValue()).replace('"amount": 5', '"amount": "five"').replace("euro", "EUR"));
    await page.getByRole("button", { name: "Check" }).click();
    await page.locator(".diff .wrong", { hasText: "amount" }).waitFor();
    await payload.fill((await payload.inputValue()).replace('"five"', "6"));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    const job = await shop.redrive.jobs.get(id);
    expect(job?.payload).toBe('{"order":90071992547409931,"amount":6,"currency":"EUR"}');
    expect(wrong.filter((each) => !each.includes("422"))).toEqual([]);
    await close();
  });

  it("tells another person within two looks who paused what and why, and is read-only to a viewer", async () => {
    const [first, second] = [await openPage(browser, shop.url), await openPage(browser, shop.url)];
    await second.page.goto(`${shop.url}#/queues`);
    await first.page.goto(`${shop.url}#/queues`);
    await settled(second.page);
    const row = first.page.locator("tr", { hasText: "mail" });
    await row.getByRole("button", { name: "Pause" }).click();
    await first.page.getByLabel("Why, shown to everyone").fill("wrong template");
    await first.page.locator("form").getByRole("button", { name: "Pause" }).click();
    await second.page.getByText("wrong template").first().waitFor();
    await second.page.getByText("ada").first().waitFor();
    shop.who = { actor: "eve", role: "viewer" };
    await second.page.reload();
    await second.page.locator("tr", { hasText: "mail" }).waitFor();
    expect(await second.page.getByRole("button", { name: "Resume" }).first().isDisabled()).toBe(true);
    shop.who = { actor: "ada", role: "admin" };
    await first.close();
    await second.close();
  });

  it("is walked with the keyboard, and keeps what it shows while the server is away", async () => {
    const { page, close } = await openPage(browser, shop.url);
    await page.goto(shop.url);
    await settled(page);
    await goTo(page, "j");
    await page.locator("h1", { hasText: "Jobs" }).waitFor();
    await page.locator("[data-row]").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByText("1 ticked").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/jobs\/\w/);
    await page.keyboard.press("Escape");
    await page.locator("h1", { hasText: "Jobs" }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.context().setOffline(true);
    await goTo(page, "o");
    await page.getByText("The server does not answer.").first().waitFor();
    expect(await page.getByText("completed").count()).toBeGreaterThan(0);
    await page.context().setOffline(false);
    await close();
  });
});

async function goTo(page: Page, key: string): Promise<void> {
  await page.keyboard.press("g");
  await page.keyboard.press(key);
}
