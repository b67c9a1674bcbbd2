// Requests made from the OpenAPI document: the server fails at none of them, and keeps every job that it took. Here a few
// in process; `npm run prove -- http-fuzz` sends 20,000 to `redrive up` on SQLite and on Postgres.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, inject, it } from "vitest";
import { httpHandler, openAccess } from "../../src/http/index.ts";
import { openApi } from "../../src/http/openapi.ts";
import { PREFIX } from "../../src/http/routes.ts";
import { seededDice } from "../../src/testing/fake-system.ts";
import { realSystem } from "../../src/system/real.ts";
import { createBench } from "../support/cli.ts";
import { startCli, until } from "../support/cli-processes.ts";
import { testSchema } from "../support/postgres-queue.ts";
import { type Document, fuzz, type FuzzAnswer, type FuzzReport, type FuzzRequest } from "./fuzzer.ts";
import { openScene, type Scene } from "./scene.ts";

const PROVEN = Number(process.env["REDRIVE_PROVE_REQUESTS"] ?? 0);
const SEED = Number(process.env["REDRIVE_PROVE_SEED"] ?? 1);
const TOKEN = "fuzz".repeat(10);

function diceOf(name: string): () => number {
  const bits = seededDice(SEED, name);
  return () => bits() / 2 ** 32;
}

/** What every run of requests must come to. */
function judge(report: FuzzReport, requests: number): void {
  const short = ({ request, answer }: FuzzReport["failed"][number]) =>
    `${JSON.stringify(request)} ${answer.text}`.slice(0, 1_000);
  expect(report.failed.map(short)).toEqual([]);
  const good = Object.values(report.good).reduce((sum, each) => sum + each, 0);
  expect(good / requests).toBeGreaterThan(0.3);
}

describe("requests made from the document", () => {
  let scene: Scene;
  afterEach(() => scene.redrive.close());

  it("are all answered, and lose no job", async () => {
    scene = await openScene();
    const { redrive } = scene;
    const access = openAccess({
      store: redrive.store,
      system: realSystem,
      adminToken: TOKEN,
      port: () => 1,
      isSecure: false,
    });
    let callers = 0;
    // An actor for each request: their changes are not limited.
    const auth = { ...access, identify: () => ({ actor: `a-${callers++}`, role: "admin" as const }) };
    const errors: unknown[] = [];
    const log = { debug() {}, info() {}, warn() {}, error: (fields: unknown) => void errors.push(fields) };
    const handler = httpHandler(redrive, { auth, log });
    const send = async ({ method, path, headers, body }: FuzzRequest): Promise<FuzzAnswer> => {
      const request = new Request(`http://127.0.0.1:1${path}`, { method, headers, body: body as string | null });
      const response = await handler(request);
      if (response.headers.get("content-type") !== "text/event-stream")
        return { status: response.status, text: await response.text() };
      await response.body?.cancel();
      return { status: response.status, text: "" };
    };
    const before = await redrive.store.count();
    const requests = 200;
    const report = await fuzz({
      document: openApi() as Document,
      requests,
      random: diceOf("small"),
      tokens: [TOKEN],
      send,
      together: 1,
    });
    judge(report, requests);
    expect(errors).toEqual([]);
    const total = (counts: object): number => (Object.values(counts) as number[]).reduce((sum, each) => sum + each, 0);
    expect(total(await redrive.store.count())).toBe(total(before) + report.made.size - report.removed);
  });
});

const FILE = `
import { defineJob, PermanentError } from "redrive";
export const mail = defineJob("mail", {
  service: "smtp",
  run() {
    throw new PermanentError("no such address");
  },
});
export const fine = defineJob("fine", { run: () => ({ ok: true }) });
`;

/** Resident memory in MiB; 0 where Linux does not tell. */
function memoryOf(pid: number | undefined): number {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4_096) / 2 ** 20;
  } catch {
    return 0;
  }
}

describe.skipIf(PROVEN === 0)("many requests to a server", () => {
  it.each([
    ["SQLite", (folder: string) => `sqlite:${folder}/redrive.db`],
    ["Postgres", () => testSchema(inject("postgres18")).url],
  ])(
    "on %s are all answered, lose no job, and leave memory as it was",
    async (name, addressOf) => {
      const bench = createBench();
      writeFileSync(join(bench.folder, "jobs.ts"), FILE);
      const store = addressOf(bench.folder);
      const up = ["up", "--port", "0", "--json", "--jobs", "jobs.ts", "--store", store];
      const running = startCli(bench, up, { REDRIVE_TOKEN: TOKEN });
      await until(
        () => running.text.out.includes("\n") || running.child.exitCode !== null,
        () => running.text.err,
      );
      const { url } = JSON.parse(running.text.out) as { url: string };
      const authorization = `Bearer ${TOKEN}`;
      const headers = { authorization, "content-type": "application/x-ndjson" };
      const lines = Array.from({ length: 200 }, (_, n) => `{"type":"mail","payload":{"n":${n}},"id":"s-${n}"}`).join(
        "\n",
      );
      await (await fetch(`${url}${PREFIX}/jobs`, { method: "POST", headers, body: lines })).text();
      const send = async ({ method, path, headers: own, body }: FuzzRequest): Promise<FuzzAnswer> => {
        const over = new AbortController();
        const init = { method, headers: own, body: body as string | null, signal: over.signal };
        const response = await fetch(`${url}${path}`, init);
        if (response.headers.get("content-type") !== "text/event-stream")
          return { status: response.status, text: await response.text() };
        over.abort();
        return { status: response.status, text: "" };
      };
      const memory: number[] = [];
      const report = await fuzz({
        document: (await (await fetch(`${url}${PREFIX}/openapi.json`)).json()) as Document,
        requests: PROVEN,
        random: diceOf(name),
        tokens: [TOKEN],
        send,
        together: 4,
        onHundred: () => memory.push(memoryOf(running.child.pid)),
      });
      const half = memory.slice(memory.length >> 1);
      const [most, first] = [Math.max(...half), Math.max(...memory.slice(memory.length >> 2, memory.length >> 1))];
      console.log(`${name}: ${JSON.stringify(report.statuses)}, ${Math.round(first)} then ${Math.round(most)} MiB`);
      judge(report, PROVEN);
      const never = Object.entries(report.good).filter(([, count]) => count === 0);
      expect(never).toEqual([]);
      const missing = [];
      for (const id of report.made)
        if ((await fetch(`${url}${PREFIX}/jobs/${id}`, { headers: { authorization } })).status === 404)
          missing.push(id);
      expect(missing.length).toBeLessThanOrEqual(report.removed);
      expect(most).toBeLessThan(first * 1.3 + 30);
      running.child.kill("SIGTERM");
      expect((await running.ended).code).toBe(143);
      expect(running.text.err).not.toMatch(/a request failed/);
    },
    60_000 + PROVEN * 200,
  );
});
