// What many tenants cost, and what limits cost that no tenant reaches: on both stores, each beside the same work without.
// Medians of three with their spread; only ratios travel from one machine to another.
//   node bench/tenants.mjs [--short] [--only sqlite,postgres]
import { join } from "node:path";
import { parseArgs } from "node:util";
import { play } from "./actor.mjs";
import { against, inScratch, median, rate, row } from "./measure.mjs";
import { inDatabase } from "./postgres/database.mjs";
import { startPostgres } from "./postgres/server.mjs";

const { values } = parseArgs({
  options: { short: { type: "boolean" }, "no-peers": { type: "boolean" }, only: { type: "string" } },
});
const STORES = ["sqlite", "postgres"];
const stores = values.only?.split(",") ?? STORES;
for (const store of stores)
  if (!STORES.includes(store)) throw new Error(`--only knows ${STORES.join(", ")}; got ${store}.`);
const count = values.short ? 2_000 : 100_000;
const rounds = values.short ? 1 : 3;

/** Works off as many jobs of so many tenants; gives jobs per second. */
const sqlite = (task) => inScratch((folder) => drained({ ...task, store: `sqlite:${join(folder, "bench.db")}` }));
const drained = async (task) => (await play("./actors/tenants.mjs", { count, ...task })).perSecond;

async function compare(name, one) {
  const got = { alone: [], each: [], many: [], limited: [] };
  const some = Math.min(1_000, count / 10);
  for (let round = 0; round < rounds; round++) {
    got.alone.push(await one({ tenants: 1 }));
    got.each.push(await one({ tenants: count }));
    got.many.push(await one({ tenants: some }));
    got.limited.push(await one({ tenants: some, limits: true }));
  }
  const { alone, each, many, limited } = Object.fromEntries(
    Object.entries(got).map(([key, figures]) => [key, median(figures)]),
  );
  const share = (a, b, least) => {
    const part = a.middle / b.middle;
    return [`${Math.round(part * 100)} %`, against(`≥ ${least * 100} %`, part >= least)];
  };
  row(`${name}, one tenant with ${count} jobs, jobs/s`, rate(alone));
  row(`${name}, ${count} tenants with one job each, jobs/s`, rate(each));
  row("  share of the rate of one tenant", ...share(each, alone, 0.5));
  row(`${name}, ${some} tenants, jobs/s`, rate(many));
  row(`${name}, ${some} tenants with limits and breaker, jobs/s`, rate(limited));
  row("  share of the rate without them", ...share(limited, many, 0.8));
}

const onPostgres = () =>
  inScratch(async (folder) => {
    const server = await startPostgres(folder);
    try {
      await compare("Postgres", (task) => inDatabase(server, (store) => drained({ ...task, store })));
    } finally {
      await server.stop();
    }
  });
if (stores.includes("sqlite")) await compare("SQLite", sqlite);
if (stores.includes("postgres")) await onPostgres();
