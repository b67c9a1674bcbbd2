// A first demo: sixty jobs against a service with a bad day, on a SQLite file, printed as they happen. A short loop
// stands in for the worker: it claims, runs, asks core for a verdict and settles. At the end the books must balance.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { styleText } from "node:util";
import { exponential } from "../dist/core/backoff.js";
import { classify } from "../dist/core/classify.js";
import { PermanentError } from "../dist/core/errors.js";
import { failureFrom } from "../dist/core/failure.js";
import { encodePayload, encodeResult } from "../dist/core/payload.js";
import { plan } from "../dist/core/plan.js";
import { resolvePolicy } from "../dist/core/policy.js";
import { verdict } from "../dist/core/verdict.js";
import { createSqliteStore } from "../dist/store/sqlite/index.js";
import { realSystem as system } from "../dist/system/real.js";

const JOBS = 60;
const color = (style, text) => (process.stdout.isTTY && !process.env.NO_COLOR ? styleText(style, text) : text);
const say = (mark, style, text) => console.log(`  ${color(style, mark)} ${text}`);

const { policy } = resolvePolicy({
  type: { preset: "worker", backoff: exponential({ initial: "150ms", multiplier: 2, max: "1s" }) },
});

/** The service and its bad day: an outage, broken files, a rate limit, one file that never works. */
function fetchThumbnail({ file, kind }, attempt, tick) {
  if (kind === "broken") throw new PermanentError(`${file} is not an image`);
  if (kind === "cursed")
    throw Object.assign(new Error(`read ECONNRESET while fetching ${file}`), { code: "ECONNRESET" });
  if (kind === "limited" && attempt === 1)
    throw Object.assign(new Error("429 Too Many Requests"), { status: 429, headers: { "retry-after": "1" } });
  if (kind === "outage" && tick < 4) throw Object.assign(new Error("503 Service Unavailable"), { status: 503 });
  return { thumbnail_key: `thumbs/${file}` };
}

function kindOf(n) {
  if (n % 20 === 7) return "broken";
  if (n === 33) return "cursed";
  if (n % 9 === 4) return "limited";
  return n % 4 === 0 ? "outage" : "fine";
}

async function run(store) {
  const limits = { maxAttempts: policy.maxAttempts, maxCrashes: policy.maxCrashes, deadlineMs: null, stuckMs: null };
  const belonging = { type: "thumbnail", queue: "default", service: "media-store", tenant: null };
  await store.enqueue(
    Array.from({ length: JOBS }, (_, n) => {
      const file = `photo-${String(n).padStart(2, "0")}.jpg`;
      const payload = encodePayload({ file, kind: kindOf(n) });
      return {
        id: system.jobId(),
        ...belonging,
        ...limits,
        priority: n % 10 === 0 ? 5 : 0,
        payload,
        key: file,
        digest: payload,
        delayMs: 0,
        runAt: null,
      };
    }),
  );
  const worker = system.workerId();
  await store.register({ id: worker, leaseMs: 30_000, pid: process.pid, host: "demo", release: null });
  const { version } = await store.control();
  for (let tick = 0, ticket = 1; tick < 400; tick++) {
    const counts = await store.count();
    if (counts.queued + counts.running === 0) return;
    const { lanes } = await store.lanes(null, 100);
    const appetite = {
      want: 20,
      serves: new Set(["thumbnail"]),
      queues: null,
      grants: new Map(),
      suspects: 1,
      turn: tick,
    };
    const quotas = plan(lanes, appetite);
    const { jobs } = await store.claim({
      worker,
      quotas,
      limit: 20,
      nonce: system.nonce(),
      control: version,
      ticket,
      startedThrough: ticket + 19,
    });
    ticket += jobs.length;
    const settlements = jobs.map((job) => ({
      id: job.id,
      epoch: job.epoch,
      nonce: job.nonce,
      verdict: judge(job, tick),
    }));
    if (settlements.length > 0) await store.settle({ settlements, worker, startedThrough: ticket });
    await system.sleep(60);
  }
}

function judge(job, tick) {
  const input = JSON.parse(job.payload);
  const attempt = `(attempt ${job.attempts + 1}/${job.maxAttempts})`;
  let outcome;
  try {
    outcome = { kind: "completed", result: encodeResult(fetchThumbnail(input, job.attempts + 1, tick)) };
  } catch (error) {
    const judged = classify(error, { type: job.type, service: job.service }, [], system.now());
    outcome = { kind: "failed", failure: failureFrom(error, judged) };
  }
  const answer = verdict(job, outcome, policy, system.now(), system.random);
  const why = outcome.failure ? `${outcome.failure.message} [${outcome.failure.class}]` : "";
  if (answer.kind === "complete") say("✓", "green", `${input.file} done ${attempt}`);
  if (answer.kind === "retry") say("↻", "yellow", `${input.file} ${why}; again in ${answer.delayMs} ms ${attempt}`);
  if (answer.kind === "dead") say("✗", "red", `${input.file} ${why}; dead letter: ${answer.reason} ${attempt}`);
  return answer;
}

async function books(store) {
  const counts = await store.count();
  const letters = (await store.deadLetters({ limit: 200 })).items;
  const causes = new Map();
  for (const { failure } of letters)
    causes.set(failure.fingerprint, [...(causes.get(failure.fingerprint) ?? []), failure]);
  console.log(`\n${color("bold", "Dead letters by cause")}`);
  for (const [fingerprint, all] of causes)
    console.log(
      `  ${String(all.length).padStart(3)} × ${all[0].class}: ${all[0].message}  ${color("dim", fingerprint)}`,
    );
  const balanced =
    counts.completed + counts.dead === JOBS && letters.length === counts.dead && counts.queued + counts.running === 0;
  console.log(
    `\n${JOBS} jobs: ${counts.completed} completed, ${counts.dead} dead, ${counts.queued + counts.running} left. ${balanced ? "The books balance." : "THE BOOKS DO NOT BALANCE."}`,
  );
  return balanced;
}

const folder = mkdtempSync(join(tmpdir(), "redrive-demo-"));
const store = createSqliteStore({ path: join(folder, "demo.db") });
console.log(color("bold", `Redrive: ${JOBS} jobs against a service with a bad day\n`));
let balanced = false;
try {
  await run(store);
  balanced = await books(store);
} finally {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = balanced ? 0 : 1;
