// The program of the child process in which a job with its last crash left runs alone. Started by `isolation`, never
// by hand; its arguments are one JSON text. Nothing it does can hurt anybody but itself.
import { hostId, onParentStop, tellParent } from "../system/processes.ts";
import { lineLog } from "../system/log.ts";
import { realSystem } from "../system/real.ts";
import { runAlone } from "../worker/alone.ts";
import type { AloneReport } from "../worker/isolation.ts";
import { resolveWorker } from "../worker/settings.ts";
import type { IsolatedTask } from "./isolation.ts";
import { loadJobs } from "./load-jobs.ts";
import { openStore } from "./open-store.ts";

const {
  store: url,
  jobs: file,
  worker,
  lane,
  control,
  lease,
  heartbeat,
} = JSON.parse(process.argv[2] ?? "{}") as IsolatedTask;
const jobs = await loadJobs(file);
const told: Promise<void>[] = [];
const stopping = new AbortController();
onParentStop(() => stopping.abort());
const store = openStore(url);
try {
  await runAlone({
    store,
    system: realSystem,
    worker,
    lane,
    control,
    stop: stopping.signal,
    jobs,
    settings: resolveWorker({ lease, heartbeat }),
    // A host of its own: only the parent, who knows how it ended, may call this process gone before its lease ends.
    process: { pid: process.pid, host: `${hostId()}/isolated` },
    log: lineLog("warn"),
    report: (job, verdict, settled) => void told.push(tellParent({ job, verdict, settled } satisfies AloneReport)),
  });
} finally {
  await store.close();
}
await Promise.all(told);
// A handler that ignored its abort would keep the process; its job is settled, so nothing is lost with it.
process.exit(0);
