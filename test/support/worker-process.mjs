// A process of its own with one worker on a SQLite file, or on the store of an address. Its argument is one JSON text; it tells its parent what the
// worker says and does, and does what the parent asks: stop, drain, report what it cost, or end.
const { path, address, options, services, host, isolate, level } = JSON.parse(process.argv[2]);
const built = process.env.REDRIVE_BUILT;
const { createSqliteStore } = await import(`${built}store/sqlite/index.js`);
const { openStore } = await import(`${built}open-store.js`);
const { createWorker } = await import(`${built}worker/worker.js`);
const { resolveLimits } = await import(`${built}core/service.js`);
const { resolveWorker } = await import(`${built}worker/settings.js`);
const { loadJobs } = await import(`${built}config/load-jobs.js`);
const { childIsolation } = await import(`${built}child-isolation.js`);
const { hostId, isAlive } = await import(`${built}system/processes.js`);
const { realSystem } = await import(`${built}system/real.js`);

const file = process.env.REDRIVE_JOBS;
const tell = (message) => new Promise((resolve) => process.send?.(message, resolve));
const line = (name) => (fields, message) => {
  if (name !== "debug" || level === "debug") void tell({ line: message, level: name, fields, at: Date.now() });
};
const settings = resolveWorker(options);
const store = address === undefined ? createSqliteStore({ path }) : await openStore(address);
const { leaseMs, heartbeatMs, abortGraceMs } = settings;
const worker = createWorker({
  store,
  system: realSystem,
  jobs: await loadJobs(file),
  settings,
  limits: resolveLimits({ services }),
  log: { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") },
  events: { emit: (event) => void tell({ event: event.kind, id: event.job?.id ?? event.worker, at: Date.now() }) },
  process: { pid: process.pid, host: host ?? hostId(), isAlive },
  isolation: isolate
    ? childIsolation({ store: `sqlite:${path}`, jobs: file, leaseMs, heartbeatMs, abortGraceMs })
    : null,
});

const orders = {
  async stop(withinMs) {
    await worker.stop({ withinMs });
    await store.close();
    await tell({ stopped: worker.counts });
    process.disconnect();
  },
  async drain(graceMs) {
    await tell({ drained: await worker.drain({ graceMs }) });
    await store.close();
    process.disconnect();
  },
  /** What an idle worker costs from now on, for so many milliseconds. */
  async cost(ms) {
    globalThis.gc?.();
    const before = process.memoryUsage();
    const cpu = process.cpuUsage();
    const from = performance.now();
    await new Promise((resolve) => setTimeout(resolve, ms));
    const { user, system } = process.cpuUsage(cpu);
    const share = (user + system) / 1_000 / (performance.now() - from);
    globalThis.gc?.();
    const after = process.memoryUsage();
    await tell({ share, heapGrowth: after.heapUsed - before.heapUsed, rssGrowth: after.rss - before.rss });
  },
};
process.on("message", ([order, argument]) => void orders[order](argument));
if (options !== undefined && process.argv[3] !== "unstarted") await worker.start();
await tell({ ready: worker.id, pid: process.pid });
