// The program of a worker process of the demo: the real worker through the public API. Started by `crew.ts`, never by
// hand; its arguments are one JSON text. It tells its parent about every run, and stops when asked or left alone.
import { createRedrive, type RedriveEvent } from "redrive";
import { onParentStop, tellParent } from "../kit/child.ts";
import { DEMO_JOBS, DEMO_SERVICES, type OrderInput, RELEASE } from "./jobs.ts";
import type { CrewMessage, CrewReport, WorkerTask } from "./crew.ts";

const { store, concurrency } = JSON.parse(process.argv[2] ?? "{}") as WorkerTask;
const tell = (message: CrewMessage): Promise<void> => tellParent(message);
const redrive = await createRedrive({ store, jobs: DEMO_JOBS, services: DEMO_SERVICES, log: "silent" });
const worker = redrive.worker({ release: RELEASE, concurrency, lease: "3s", heartbeat: "500ms", poll: "250ms" });
redrive.on("*", (event) => {
  const report = reportOf(event);
  if (report) void tell({ kind: "run", report });
});
onParentStop(() => {
  void worker
    .stop({ within: "2s" })
    .then(() => redrive.close())
    .finally(() => process.exit(0));
});
await worker.start();
await tell({ kind: "ready" });

function reportOf(event: RedriveEvent): CrewReport | null {
  if (!("verdict" in event)) return null;
  const { job, verdict } = event;
  const { order } = JSON.parse(job.payload) as Partial<OrderInput>;
  const failure = "failure" in verdict ? verdict.failure : null;
  const charge = "charge" in verdict ? verdict.charge : { attempts: 0, crashes: 0 };
  return {
    outcome: event.kind.slice("job.".length) as CrewReport["outcome"],
    id: job.id,
    type: job.type,
    service: job.service ?? "",
    order: order ?? 0,
    attempts: job.attempts,
    maxAttempts: job.maxAttempts,
    crashed: charge.crashes > 0,
    started: charge.attempts > 0,
    delayMs: "delayMs" in verdict ? verdict.delayMs : 0,
    failure: failure && {
      class: failure.class,
      code: failure.code ?? null,
      message: failure.message,
      fingerprint: failure.fingerprint,
    },
  };
}
