// Takes the records of a file through one call each and writes the results to another: with processRecords, through the library as
// users have it, or without a store in a plain loop. `again` feeds the same file a second time, when all is known.
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { finished } from "node:stream/promises";
import { createRedrive, defineJob } from "../../dist/index.js";
import { actor } from "../actor.mjs";

const enrich = async ({ email }) => ({ length: email.length });

async function* recordsIn(input) {
  for await (const line of createInterface({ input: createReadStream(input) })) yield JSON.parse(line);
}

/** How often a long run says how far it is. */
const PROGRESS_MS = 10_000;

/** Says how many results there are by now, for the process that waits; returns the way to stop that. */
function progress(count, told) {
  const began = performance.now();
  const timer = setInterval(() => {
    const perSecond = Math.round(told() / ((performance.now() - began) / 1_000));
    const mb = Math.round(process.memoryUsage.rss() / 1_048_576);
    process.stdout.write(`  ${told()} of ${count} records, ${perSecond}/s, ${mb} MB\n`);
  }, PROGRESS_MS);
  return () => clearInterval(timer);
}

/** Writes results as lines; resolves with how many when the work is done and they are written. */
async function toFile({ output, count }, work) {
  const out = createWriteStream(output);
  let told = 0;
  const done = progress(count, () => told);
  const write = ({ id, result }) => {
    told += 1;
    if (!out.write(`${JSON.stringify({ id, result })}\n`)) return once(out, "drain");
  };
  try {
    await work(write);
  } finally {
    done();
  }
  out.end();
  await finished(out);
  return told;
}

async function loop(task) {
  return toFile(task, async (write) => {
    for await (const record of recordsIn(task.input)) await write({ id: record.id, result: await enrich(record) });
  });
}

async function batch(redrive, job, task) {
  return toFile(task, (write) =>
    redrive.processRecords(job, recordsIn(task.input), { id: ({ id }) => id, grace: 0, onResult: write }),
  );
}

/** Records per second and the CPU of each, in microseconds. */
async function timed(count, work) {
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  const told = await work();
  const { user, system } = process.cpuUsage(cpu);
  if (told !== count) throw new Error(`told ${told} results of ${count}`);
  return { perSecond: count / ((performance.now() - began) / 1_000), cpuUs: (user + system) / count };
}

await actor(async (task, go) => {
  const { store, count, again } = task;
  const job = defineJob("bench", { run: enrich });
  const redrive = store && (await createRedrive({ store, jobs: [job], log: "error" }));
  await go();
  const work = redrive ? () => batch(redrive, job, task) : () => loop(task);
  const figures = await timed(count, work);
  const peakMb = process.resourceUsage().maxRSS / 1_024;
  const second = again ? await timed(count, work) : null;
  await redrive?.close();
  return { ...figures, peakMb, againPerSecond: second?.perSecond ?? 0 };
});
