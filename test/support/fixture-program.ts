// A program of this version on a stored fixture: it knows the job types of scripts/fixture-scene.mjs, and notes what it runs.
import { onTestFinished } from "vitest";
import { defineJob, type JobDefinition, type Redrive } from "../../src/index.ts";
import { assemble } from "../../src/redrive.ts";
import { realSystem } from "../../src/system/real.ts";
import type { Fixture } from "./fixtures.ts";

/** Ten minutes after the fixtures were left; the gone worker's lease is over, and so is the wait for the retry. */
const LEFT = Date.UTC(2026, 0, 1, 12, 31);

interface Input {
  readonly label?: string;
}

/** A program that knows the job types of the fixtures, and notes what it runs. */
export async function programOn({ open, rows }: Fixture, extra: readonly JobDefinition[] = []) {
  let ahead = 0;
  const began = realSystem.monotonic();
  const now = (): number => LEFT + ahead + Math.floor(realSystem.monotonic() - began);
  const store = await open(now);
  const ran: string[] = [];
  const of = (type: string, options: { queue?: string; service?: string } = {}) =>
    defineJob(type, { ...options, run: ({ label = "?" }: Input) => void ran.push(label) });
  const mail = of("mail");
  const jobs = [
    mail,
    of("pay", { service: "bank" }),
    of("import"),
    of("report", { queue: "slow" }),
    of("ship", { queue: "slow" }),
    ...extra,
  ];
  const system = { ...realSystem, now };
  // The machine of the worker that is gone: its process does not live any more.
  const process = { pid: 1, host: "a machine that is gone", isAlive: () => false };
  const redrive: Redrive = await assemble({ store, jobs, log: "silent" }, { system, process });
  onTestFinished(() => redrive.close());
  const drain = async (): Promise<string[]> => {
    // Until the run of the gone worker was given up: a worker that was itself out of contact for a while does not do so yet.
    for (let times = 0; times === 0 || (times < 50 && (await store.count()).running > 0); times++)
      await redrive.worker({ concurrency: 1, poll: 20, lease: 500 }).drain({ grace: 0 });
    return ran.splice(0);
  };
  return { redrive, store, rows, mail, drain, pass: (ms: number) => (ahead += ms) };
}
