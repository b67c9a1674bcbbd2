// Records through `processRecords`: read from a file of NDJSON, called, results written to a file, beside a plain loop that does
// the same without retries and without a store, which is the limit. Then whether the peak of memory depends on how many there
// are. Medians of three with their spread; only ratios travel from one machine to another.
//   node bench/records.mjs [--short] [--records N] [--only sqlite,postgres]
import { createWriteStream, statSync } from "node:fs";
import { once } from "node:events";
import { finished } from "node:stream/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startActor } from "./actor.mjs";
import { against, inScratch, median, rate, row } from "./measure.mjs";
import { inDatabase } from "./postgres/database.mjs";
import { startPostgres } from "./postgres/server.mjs";

const { values } = parseArgs({
  options: {
    short: { type: "boolean" },
    "no-peers": { type: "boolean" },
    records: { type: "string" },
    only: { type: "string" },
  },
});
const STORES = ["sqlite", "postgres"];
const stores = values.only?.split(",") ?? STORES;
for (const store of stores)
  if (!STORES.includes(store)) throw new Error(`--only knows ${STORES.join(", ")}; got ${store}.`);
const few = values.short ? 1_000 : 50_000;
const many = values.records === undefined ? (values.short ? 3_000 : 500_000) : Number(values.records);
if (!Number.isInteger(many) || many < 1 || many > 100_000_000) {
  process.stderr.write(
    `--records: expected a whole number from 1 to 100000000; got ${JSON.stringify(values.records)}\n`,
  );
  process.exit(2);
}
const rounds = values.short ? 1 : 3;
/** A slow machine still does this many a second. */
const LEAST_PER_SECOND = 500;

/** Writes so many records of about a hundred bytes; gives the path. */
async function written(folder, count) {
  const path = join(folder, `records-${count}.ndjson`);
  const out = createWriteStream(path);
  for (let from = 0; from < count; from += 1_000) {
    const lines = Array.from({ length: Math.min(1_000, count - from) }, (_, at) =>
      JSON.stringify({ id: `r${from + at}`, email: `customer-${from + at}@example.com`, note: "x".repeat(40) }),
    );
    if (!out.write(`${lines.join("\n")}\n`)) await once(out, "drain");
  }
  out.end();
  await finished(out);
  return path;
}

/** The actor at work, and the signal that ended the run: a user who stops it leaves no process and no files. */
let actor = null;
const ended = { by: "" };
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    ended.by = signal;
    actor?.child.kill("SIGKILL");
  });
}

/** Takes a file through; gives records per second, the CPU of each, the peak, and the rate of a second time. */
async function taken(task) {
  const { count, input } = task;
  const longestMs = 120_000 + (count / LEAST_PER_SECOND) * 2_000;
  if (ended.by) throw new Error(ended.by);
  process.stderr.write(`${count} records ${task.store ? "through processRecords" : "in a plain loop"}\n`);
  actor = startActor("./actors/records.mjs", { ...task, output: `${input}.out`, longestMs });
  await actor.ready;
  actor.say("go");
  const figures = await actor.figures;
  if (statSync(`${input}.out`).size < count * 20) throw new Error("the output is not whole");
  return figures;
}

async function compare(name, files, plain, inStore) {
  const got = [];
  for (let round = 0; round < rounds; round++)
    got.push(await inStore((store) => taken({ store, count: few, input: files.few, again: true })));
  const large = await inStore((store) => taken({ store, count: many, input: files.many }));
  const of = (field) => median(got.map((figures) => figures[field]));
  const perSecond = of("perSecond");
  const [before, after] = [of("peakMb").middle, large.peakMb];
  row(`Redrive on ${name}, records/s`, rate(perSecond));
  row("  share of the plain loop", `${((perSecond.middle / plain) * 100).toFixed(1)} %`, "for information");
  row("  CPU of the process a record", `${of("cpuUs").middle.toFixed(1)} µs`, "for information");
  row("  fed again, all known, records/s", rate(of("againPerSecond")));
  const more = (after / before - 1) * 100;
  const peaks = `${Math.round(before)} → ${Math.round(after)} MB (${more < 0 ? "" : "+"}${more.toFixed(0)} %)`;
  row(`  peak of memory, ${few} → ${many} records`, peaks, against("≤ + 20 %", after <= before * 1.2));
}

async function all(folder) {
  const files = { few: await written(folder, few), many: await written(folder, many) };
  const loops = [];
  for (let round = 0; round < rounds; round++) loops.push(await taken({ count: few, input: files.few }));
  const plain = median(loops.map(({ perSecond }) => perSecond));
  row("plain loop without retries, records/s", rate(plain));
  if (stores.includes("sqlite"))
    await compare("SQLite", files, plain.middle, (work) => inScratch((own) => work(`sqlite:${join(own, "bench.db")}`)));
  if (!stores.includes("postgres")) return;
  await inScratch(async (own) => {
    const server = await startPostgres(own);
    try {
      await compare("Postgres", files, plain.middle, (work) => inDatabase(server, work));
    } finally {
      await server.stop();
    }
  });
}

try {
  await inScratch(all);
} catch (error) {
  if (!ended.by) throw error;
  process.stderr.write(`ended by ${ended.by}\n`);
  process.exitCode = 130;
}
