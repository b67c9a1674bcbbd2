// The last chance of a suspect in the simulation: a child process that runs one job, on virtual time and over a line of its
// own, that its job can kill and that ends with its parent.
import type { ChildEnd } from "../../src/system/processes.ts";
import type { Log } from "../../src/system/log.ts";
import { runAlone } from "../../src/worker/alone.ts";
import { ALONE_DONE, ISOLATED_HOST, type Isolation } from "../../src/worker/isolation.ts";
import type { WorkerSettings } from "../../src/worker/settings.ts";
import { definitionsFor } from "./handler.ts";
import { reachStore } from "./line.ts";
import type { Scene } from "./scene.ts";
import type { Actor } from "./world.ts";

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
/** A child whose parent is gone has so long to write what became of its job. */
const LAST_WRITE_MS = 5_000;

/** What the worker of this actor starts for a job with its last crash left. */
export function isolationOf(parent: Actor, scene: Scene, settings: WorkerSettings): Isolation {
  let children = 0;
  return ({ worker, signal, stop, ...request }) =>
    new Promise<ChildEnd>((resolve) => {
      const told: unknown[] = [];
      const stopping = new AbortController();
      const end = (child: Actor, code: number | null): void => {
        // From here on anybody may say that the process is gone.
        child.exit();
        scene.scribe.write(parent.name, "gone", "ok", { worker });
        parent.later(0, () => resolve({ code, signal: code === null ? "SIGKILL" : null, output: "", told }));
      };
      scene.world.spawn(`${parent.name}.alone-${++children}`, async (child) => {
        child.onCrash(() => end(child, null));
        signal.addEventListener("abort", () => child.crash());
        stop.addEventListener("abort", () => stopping.abort());
        parent.onEnd(() => {
          stopping.abort();
          scene.world.later(LAST_WRITE_MS, () => child.exit());
        });
        const code = await runAlone({
          ...request,
          store: reachStore(scene.store, child, scene),
          system: child.system,
          worker,
          stop: stopping.signal,
          jobs: definitionsFor(child, scene),
          settings,
          process: { pid: 1, host: `${child.name}${ISOLATED_HOST}` },
          log: SILENT,
          report: (report) => void told.push(report),
        }).then(
          () => 0,
          () => 1,
        );
        if (code === 0) told.push(ALONE_DONE);
        if (child.alive) end(child, code);
      });
    });
}
