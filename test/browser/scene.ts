// A small shop on a bad day, on the memory store and a clock of its own: a bank that goes down, a bug in one release, people
// who pause and schedule, one job of every state. A server with the dashboard stands before it.
import { fileURLToPath } from "node:url";
import * as v from "valibot";
import { httpHandler, type Identity } from "../../src/http/index.ts";
import { serveHttp } from "../../src/http/serve.ts";
import { defineJob, PermanentError } from "../../src/index.ts";
import { createTestRedrive, type TestRedrive } from "../../src/testing/index.ts";

/** Where `npm run build` puts the dashboard. */
export const BUILT = fileURLToPath(new URL("../../dist/dashboard", import.meta.url));

/** The start of the day. */
export const NOON = Date.parse("2027-03-02T12:00:00Z");

/** What the shop depends on; tests turn it. */
export interface Weather {
  bankIsDown: boolean;
  hasBug: boolean;
}

/** A shop with a server before it. */
export interface Shop {
  readonly redrive: TestRedrive;
  readonly weather: Weather;
  readonly url: string;
  /** Who calls; change it to look as another person. */
  who: Identity | null;
  close(): Promise<void>;
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** The frames of a program, as an error of a handler has them. */
function withStack(error: Error): Error {
  error.stack = [
    `${error.name}: ${error.message}`,
    "    at charge (file:///srv/shop/jobs/charge.ts:41:11)",
    "    at run (file:///srv/shop/jobs/index.ts:12:5)",
    "    at Bank.send (file:///srv/shop/node_modules/bank/lib/client.js:210:15)",
    "    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)",
  ].join("\n");
  return error;
}

/** Opens the shop. */
export async function openShop({ seed = 1 }: { readonly seed?: number } = {}): Promise<Shop> {
  const weather: Weather = { bankIsDown: false, hasBug: true };
  const charge = defineJob("charge", {
    service: "bank",
    maxAttempts: 4,
    input: v.looseObject({ order: v.number(), amount: v.number(), currency: v.string() }),
    run({ currency }) {
      if (weather.bankIsDown)
        throw withStack(Object.assign(new Error("connect ETIMEDOUT 10.0.0.7:443"), { name: "BankError" }));
      if (currency === "euro") throw withStack(new PermanentError("currency: expected three letters; got euro"));
      return { paid: true };
    },
  });
  const thumbnail = defineJob("thumbnail", {
    maxAttempts: 1,
    run() {
      if (weather.hasBug) throw withStack(new TypeError("Cannot read properties of undefined (reading 'width')"));
    },
  });
  const mail = defineJob("mail", { queue: "mail", run: () => ({ sent: 1 }) });
  const redrive = await createTestRedrive({
    jobs: [charge, thumbnail, mail],
    now: NOON,
    seed,
    log: "silent",
    actor: "ada",
  });
  let who: Identity | null = { actor: "ada", role: "admin" };
  const handler = httpHandler(redrive, { auth: () => who, dashboard: BUILT, log: silent });
  const server = await serveHttp(handler, { port: 0, host: "127.0.0.1" });
  return {
    redrive,
    weather,
    url: `http://127.0.0.1:${server.port}/`,
    get who() {
      return who;
    },
    set who(next) {
      who = next;
    },
    async close() {
      await server.close();
      await redrive.close();
    },
  };
}

/** Fills the shop with a day: returns what pages are about. */
export async function playDay({
  redrive,
  weather,
}: Shop): Promise<{ readonly dead: string; readonly fingerprint: string }> {
  const order = (n: number) => ({ order: n, amount: 1_000 + n, currency: n % 9 === 0 ? "euro" : "EUR" });
  for (let minute = 0; minute < 30; minute++) {
    for (let n = 0; n < 6; n++)
      await redrive.enqueue("charge", order(minute * 6 + n), {
        tenant: ["acme", "globex", "initech"][n % 3] as string,
        key: `order-${minute * 6 + n}`,
      });
    if (minute % 5 === 0) await redrive.enqueue("thumbnail", { image: minute });
    await redrive.enqueue("mail", { to: minute });
    weather.bankIsDown = minute >= 12 && minute < 18;
    await redrive.clock.advance("1m");
  }
  weather.bankIsDown = true;
  for (let n = 0; n < 20; n++) await redrive.enqueue("charge", order(300 + n), { tenant: "acme" });

  await redrive.clock.advance("4m");
  await redrive.enqueue("mail", { to: 99 }, { delay: "2h" });
  await redrive.pause({ kind: "queue", name: "mail" }, { why: "the template is wrong" });
  await redrive.enqueue("mail", { to: 100 });
  await redrive.schedules.set("nightly-report", { cron: "0 3 * * *", timezone: "Europe/Berlin", job: "mail" });
  await redrive.schedules.set("heartbeat", { every: "5m", job: "mail" });
  const { items } = await redrive.causes.list();
  const bug = items.find(({ types }) => types.includes("thumbnail"));
  const refused = items.find(({ sample }) => sample?.message.includes("currency"));
  if (bug) await redrive.causes.note(bug.fingerprint, "Known since 1.4; the fix is in review.");
  const [letter] = (await redrive.deadLetters.list({ fingerprint: refused?.fingerprint ?? "" })).items;
  return { dead: letter?.job.id ?? "", fingerprint: refused?.fingerprint ?? "" };
}

/** Twelve charges that the bank refuses for a wrong currency, among good ones: the bug is in their payloads. */
export async function playRefusals({ redrive }: Shop): Promise<string> {
  for (let n = 0; n < 15; n++)
    await redrive.enqueue(
      "charge",
      { order: n, amount: 900 + n, currency: n < 12 ? "euro" : "EUR" },
      { key: `order-${n}` },
    );
  await redrive.clock.advance("1s");
  const [cause] = (await redrive.causes.list()).items;
  return cause?.fingerprint ?? "";
}
