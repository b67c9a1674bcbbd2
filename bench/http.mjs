// Enqueues over HTTP: single ones beside a bare `node:http` server around `enqueue`, lines beside `enqueueMany`, in turns on
// both stores. The callers run in this process. CPU is that of the serving process for each job.
//   --only sqlite|postgres   --short
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { load, post, upload } from "./http-load.mjs";
import { against, inScratch, median, row } from "./measure.mjs";
import { startPostgres } from "./postgres/server.mjs";

const ACTOR = fileURLToPath(new URL("actors/http.mjs", import.meta.url));
const TOKEN = "bench".repeat(8);
const PATH = "/api/v1/jobs";
const CALLERS = 50;
const GOALS = { single: 0.7, lines: 0.6 };

const { values: given } = parseArgs({
  options: { only: { type: "string" }, short: { type: "boolean" }, "no-peers": { type: "boolean" } },
});
const turns = given.short ? 1 : 3;
const [singles, lines] = given.short ? [500, 3_000] : [3_000, 20_000];
const kinds = given.only?.split(",") ?? ["sqlite", "postgres"];

async function start(role, store) {
  const child = fork(ACTOR, [role, store, TOKEN]);
  const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`The ${role} process ended: ${code}.`)));
  ended.catch(() => undefined);
  const heard = () => Promise.race([once(child, "message").then(([said]) => said), ended]);
  const port = await heard();
  const tell = (word) => {
    const answer = heard();
    child.send(word);
    return answer;
  };
  return { port, tell, end: () => child.kill("SIGKILL") };
}

/** Rate and CPU for each job of what is done. */
async function timed(server, count, work) {
  const before = await server.tell("cpu");
  const tookMs = await work();
  const cpuMs = (await server.tell("cpu")) - before;
  return { rate: (count * 1_000) / tookMs, cpu: (cpuMs * 1_000) / count };
}

function report(title, measured, goal) {
  const of = (side, figure) => median(measured.map((turn) => turn[side][figure])).middle;
  const ratio = median(measured.map(({ http, own }) => http.rate / own.rate)).middle;
  const shown = `${Math.round(of("http", "rate"))} of ${Math.round(of("own", "rate"))} jobs/s`;
  row(title, shown, against(`${ratio.toFixed(2)} >= ${goal}`, ratio >= goal));
  row("  CPU a job", `${of("http", "cpu").toFixed(0)} beside ${of("own", "cpu").toFixed(0)} us`);
}

async function measure(kind, store) {
  const servers = { api: await start("api", store), bare: await start("bare", store) };
  const request = post(
    PATH,
    TOKEN,
    '{"type":"single","payload":{"customer":"c-4711","url":"https://example.com/orders/1"}}',
  );
  const line = (at) =>
    `{"type":"many","payload":{"customer":"c-${at}","url":"https://example.com/orders/123456","at":${at}}}`;
  const single = (server) =>
    timed(server, singles, () => load(server.port, { callers: CALLERS, count: singles, request }));
  const byLines = () =>
    timed(servers.api, lines, () => upload(servers.api.port, { path: PATH, token: TOKEN, count: lines, line }));
  const many = () => timed(servers.bare, lines, () => servers.bare.tell(lines));
  try {
    // V8 has not seen the code.
    await single(servers.api);
    await single(servers.bare);
    await byLines();
    await many();
    const [first, second] = [[], []];
    for (let turn = 0; turn < turns; turn++) {
      const isFirst = turn % 2 === 0;
      const before = isFirst ? await single(servers.api) : await single(servers.bare);
      const after = isFirst ? await single(servers.bare) : await single(servers.api);
      first.push(isFirst ? { http: before, own: after } : { http: after, own: before });
      const early = isFirst ? await byLines() : await many();
      const late = isFirst ? await many() : await byLines();
      second.push(isFirst ? { http: early, own: late } : { http: late, own: early });
    }
    report(`${kind}: single, beside a bare server`, first, GOALS.single);
    report(`${kind}: lines, beside enqueueMany`, second, GOALS.lines);
  } finally {
    for (const server of Object.values(servers)) server.end();
  }
}

for (const kind of kinds)
  await inScratch(async (folder) => {
    if (kind === "sqlite") return measure(kind, `sqlite:${join(folder, "jobs.db")}`);
    const server = await startPostgres(folder);
    try {
      await measure(kind, server.url("postgres"));
    } finally {
      await server.stop();
    }
  });
