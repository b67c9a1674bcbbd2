// Chromium as it is found on the machine, driven without a window. Tests are skipped where there is none.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** Where chromium is; null where there is none. */
export const CHROMIUM: string | null =
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => existsSync(path)) ?? null;

/** Starts it. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM as string,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** How a page looks. */
export interface Looks {
  readonly width?: number;
  readonly isDark?: boolean;
  /** Where the page's clock stands. */
  readonly at?: number;
}

/** A page with its own cookies, and what went wrong on it. */
export async function openPage(browser: Browser, url: string, { width = 1_280, isDark = false, at }: Looks = {}) {
  const context = await browser.newContext({
    viewport: { width, height: width < 700 ? 844 : 900 },
    colorScheme: isDark ? "dark" : "light",
    reducedMotion: "reduce",
    locale: "en-US",
    timezoneId: "Europe/Berlin",
  });
  const page = await context.newPage();
  const wrong: string[] = [];
  const origin = new URL(url).origin;
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // A missing document is a question with an answer; the page shows it.
    if (message.type() === "error" && !message.text().includes("status of 4")) wrong.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("blob:"))
      wrong.push(`request to ${request.url()}`);
  });
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`))",
  );
  if (at !== undefined) await page.clock.setFixedTime(at);
  return { page, wrong, close: () => context.close() };
}

/** Waits until a page shows its data. */
export async function settled(page: Page): Promise<void> {
  await page.waitForSelector("h1", { timeout: 10_000 });
  await page.waitForSelector(".waiting", { state: "detached", timeout: 10_000 });
}
