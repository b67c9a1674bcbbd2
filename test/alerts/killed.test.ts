// Two real workers tell alerts, and one of them is killed with SIGKILL at a random moment of each alert: every message is
// told once or, after the kill, twice, and none is left out. `npm run prove -- alerts --kills 20` does it more often.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, it, onTestFinished } from "vitest";
import type { createRedrive as Create } from "../../src/index.ts";
import { seededDice } from "../../src/testing/fake-system.ts";
import { builtModule, importBuilt } from "../support/built.ts";
import { until } from "../support/cli-processes.ts";
import { testFolder } from "../support/database-file.ts";
import { testSchema } from "../support/postgres-queue.ts";

const SCRIPT = fileURLToPath(new URL("../support/alert-teller.mjs", import.meta.url));
const KILLS = Number(process.env.REDRIVE_PROVE_KILLS ?? 2);

it.each<[string, (folder: string) => string]>([
  ["sqlite", (folder) => `sqlite:${join(folder, "jobs.db")}`],
  ["postgres 18", () => testSchema(inject("postgres18")).url],
])(
  `tells each alert once or twice, its tellers killed ${KILLS} times, on %s`,
  async (_, place) => {
    const folder = testFolder();
    const [store, file] = [place(folder), join(folder, "told.ndjson")];
    const { createRedrive } = await importBuilt<{ createRedrive: typeof Create }>("index.js");
    const redrive = await createRedrive({ store, log: "silent" });
    onTestFinished(() => redrive.close());
    const library = dirname(fileURLToPath(builtModule("index.js")));
    const begin = async (): Promise<ChildProcess> => {
      const child = fork(SCRIPT, [library, store, file], { execArgv: [] });
      onTestFinished(() => void child.kill("SIGKILL"));
      await once(child, "message");
      return child;
    };
    const told = (): { readonly id: string; readonly kind: string }[] =>
      existsSync(file)
        ? readFileSync(file, "utf8")
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line))
        : [];
    const hears = (kind: string, about: string): Promise<void> =>
      until(
        () => told().some((each) => each.kind === kind && each.id.startsWith(`${about}#`)),
        () => `${kind} ${about} was not told: ${JSON.stringify(told().slice(-5))}`,
      );
    const bits = seededDice(Number(process.env.REDRIVE_PROVE_SEED ?? 1), "kills");
    const pair = [await begin(), await begin()];
    let kills = 0;
    for (; kills < KILLS; kills += 1) {
      const service = `service-${kills}`;
      await redrive.breakers.open(service, { reason: "a test" });
      await new Promise((resolve) => setTimeout(resolve, bits() % 400));
      const at = bits() % 2;
      const [victim] = pair.splice(at, 1) as [ChildProcess];
      victim.kill("SIGKILL");
      await once(victim, "exit");
      await hears("raised", `breakerOpen service:${service}`);
      pair.push(await begin());
      await redrive.breakers.close(service);
      await hears("cleared", `breakerOpen service:${service}`);
    }
    const times = new Map<string, number>();
    for (const { id } of told()) times.set(id, (times.get(id) ?? 0) + 1);
    const twice = [...times.values()].filter((count) => count === 2).length;
    expect(times.size).toBe(2 * KILLS);
    expect(Math.max(...times.values())).toBeLessThanOrEqual(2);
    process.stdout.write(`${KILLS} kills: ${times.size} messages, ${twice} of them told twice, none left out\n`);
  },
  60_000 + KILLS * 30_000,
);
