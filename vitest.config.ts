// Budgets of the test run: what hangs fails within two minutes, which is ten times what the slowest of the others needs on a
// quiet machine. Four files at a time on two cores, because many tests wait more than they compute; and the files that take
// longest first, so that nobody waits for one of them at the end.
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const LONGEST = [
  "chaos/chaos",
  "conformance/postgres",
  "worker/heartbeat",
  "worker/outage-sqlite",
  "simulation/simulation",
  "services/service-outage",
  "conformance/sqlite-threaded",
  "store/postgres/outage",
  "store/postgres/own-pool",
  "conformance/model",
  "worker/isolation",
  "schedules/schedules",
  "store/postgres/outage-network",
  "bench/smoke",
  "simulation/planted",
  "cli/process",
  "store/postgres/locked-keys",
  "services/service-outage-killed",
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return at < 0 ? LONGEST.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/postgres-setup.ts"],
    pool: "forks",
    // Some programs run without `__proto__`, and nothing here needs it.
    execArgv: ["--disable-proto=delete"],
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Waiting for what another process does, in vain only if it never does it.
    expect: { poll: { timeout: 60_000, interval: 20 } },
    teardownTimeout: 10_000,
  },
});
