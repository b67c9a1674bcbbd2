// Budgets of the test run: what hangs fails within a minute. Three files at a time on two cores, because many tests wait
// more than they compute; and the files that take longest first, so that nobody waits for one of them at the end.
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const LONGEST = [
  "simulation/simulation",
  "chaos/chaos",
  "bench/smoke",
  "worker/service-outage",
  "conformance/sqlite-threaded",
  "conformance/postgres",
  "examples/video-extraction",
  "upkeep/isolation",
  "examples/scrape-runs",
  "conformance/model",
  "upkeep/schedules",
  "simulation/planted",
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
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
  },
});
