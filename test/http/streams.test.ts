// Readers of events whose server is killed and started again: each has every event once, in order.
// `npm run prove -- http-streams` does it with a hundred readers and twenty kills.
import { expect, it } from "vitest";
import { createClient } from "../../src/http/client.ts";
import { seededDice } from "../../src/testing/fake-system.ts";
import { importBuilt } from "../support/built.ts";
import { createBench } from "../support/cli.ts";
import { type Running, startCli, until } from "../support/cli-processes.ts";

const { createRedrive } = await importBuilt<typeof import("../../src/index.ts")>("index.js");

const KILLS = Number(process.env["REDRIVE_PROVE_KILLS"] ?? 1);
const READERS = process.env["REDRIVE_PROVE"] === "http-streams" ? 100 : 5;
const TOKEN = "reader".repeat(8);
const ROW = { kind: "note", actor: null, why: null, subject: null, value: "{}" };

it(
  `gives ${READERS} readers every event once, over ${KILLS} kills of the server`,
  async () => {
    const bench = createBench();
    const store = `sqlite:${bench.folder}/redrive.db`;
    const bits = seededDice(1, "streams");
    const random = (): number => bits() / 2 ** 32;
    const serve = async (port: string): Promise<{ readonly running: Running; readonly url: string }> => {
      const up = ["up", "--port", port, "--json", "--no-worker", "--store", store];
      const running = startCli(bench, up, { REDRIVE_TOKEN: TOKEN });
      await until(
        () => running.text.out.includes("\n") || running.child.exitCode !== null,
        () => running.text.err,
      );
      return { running, url: (JSON.parse(running.text.out) as { url: string }).url };
    };
    let server = await serve("0");
    const { url } = server;
    const redrive = await createRedrive({ store, log: "silent" });
    const over = new AbortController();
    const seen: number[][] = Array.from({ length: READERS }, () => []);
    const readers = seen.map(async (own) => {
      const messages = createClient({ url, token: TOKEN }).follow({ after: 0, signal: over.signal });
      for await (const { kind, id } of messages) if (kind === "row") own.push(id);
    });
    for (let kill = 0; kill < KILLS; kill++) {
      for (let left = 5 + Math.floor(random() * 20); left > 0; left--) {
        await redrive.store.record([ROW, ROW]);
        await new Promise((resolve) => setTimeout(resolve, random() * 100));
      }
      server.running.child.kill("SIGKILL");
      await server.running.ended;
      await redrive.store.record([ROW]);
      server = await serve(new URL(url).port);
    }
    await redrive.store.record([ROW]);
    const all: number[] = [];
    for (let cursor: string | null = "0"; cursor !== null; ) {
      const page: Awaited<ReturnType<typeof redrive.store.events>> = await redrive.store.events({
        oldest: true,
        cursor,
        limit: 200,
      });
      all.push(...page.items.map(({ seq }) => seq));
      cursor = page.next;
    }
    const last = all.at(-1) ?? 0;
    await until(
      () => seen.every((own) => (own.at(-1) ?? 0) >= last),
      () =>
        `${seen.filter((own) => (own.at(-1) ?? 0) >= last).length} of ${READERS} readers have all\n${server.running.text.err}`,
      120_000,
    );
    over.abort();
    await Promise.all(readers);
    for (const own of seen) expect(own).toEqual(all);
    await redrive.close();
    server.running.child.kill("SIGTERM");
    expect((await server.running.ended).code).toBe(143);
  },
  120_000 + KILLS * 30_000,
);
