// What the command line says to type next, and what it says where nothing was found: true for the call that was made.
import { describe, expect, it } from "vitest";
import { createBench, JOBS_TS } from "../support/cli.ts";

async function withDeadJob(store: string): Promise<ReturnType<typeof createBench>> {
  const bench = createBench();
  bench.write("jobs.ts", JOBS_TS);
  await bench.run(["enqueue", "broken", "{}", "--store", store]);
  await bench.run(["drain", "--jobs", "jobs.ts", "--store", store]);
  return bench;
}

describe("a suggested command", () => {
  it("has the store of the call, where one was given", async () => {
    const bench = await withDeadJob("sqlite:./my jobs.db");
    const { out } = await bench.run(["stats", "--store", "sqlite:./my jobs.db"]);
    expect(out).toContain("Why jobs died: redrive dlq stats --store 'sqlite:./my jobs.db'\n");
    const { err } = await bench.run(["jobs", "show", "0199c8a2", "--store", "sqlite:my jobs.db"]);
    expect(err).toContain("`redrive jobs list --json --store 'sqlite:my jobs.db'`");
    bench.write("other.yaml", "store: 'sqlite:my jobs.db'");
    const { out: configured } = await bench.run(["stats", "--config", "other.yaml"]);
    expect(configured).toContain("Why jobs died: redrive dlq stats --config other.yaml\n");
  });

  it("has none where none was given", async () => {
    const bench = await withDeadJob("sqlite:redrive.db");
    expect((await bench.run(["stats"])).out).toContain("Why jobs died: redrive dlq stats\n");
  });
});

describe("an empty answer", () => {
  it("says which filters nothing fits, and what may have been meant", async () => {
    const bench = await withDeadJob("sqlite:redrive.db");
    const meant = 'No dead letter matches --type brokn (did you mean "broken"?).\n';
    expect((await bench.run(["dlq", "list", "--type", "brokn"])).out).toBe(meant);
    expect((await bench.run(["dlq", "stats", "--type", "brokn"])).out).toBe(meant);
    expect((await bench.run(["jobs", "list", "--type", "brokn", "--state", "dead"])).out).toBe(
      "No job matches --state dead --type brokn.\n",
    );
    expect((await bench.json(["dlq", "list", "--type", "brokn"])).document).toEqual({ items: [], next: null });
  });

  it("says that there is nothing where nothing was filtered", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    expect((await bench.run(["dlq", "list"])).out).toBe("There are no dead letters.\n");
    expect((await bench.run(["jobs", "list"])).out).toBe("There are no jobs.\n");
  });
});

describe("a remedy", () => {
  it("about a taken key is a flag", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "thing", "1", "--key", "k"]);
    const { code, err } = await bench.run(["enqueue", "thing", "2", "--key", "k"]);
    expect({ code, err }).toEqual({ code: 4, err: expect.stringContaining("Use another key, or --unique replace.") });
  });

  it("about a store shows the whole form, and still no password", async () => {
    const { err } = await createBench().run(["stats", "--store", "mysql://me:hunter2@host/db"]);
    expect(err).toContain("postgres://USER:PASSWORD@HOST:PORT/DATABASE; got");
    expect(err).not.toContain("hunter2");
  });

  it("of help for a command that is not there names those that are", async () => {
    for (const args of [["dlq", "nope"], ["nope"]]) {
      const { code, out, err } = await createBench().run(["help", ...args]);
      expect({ code, out, err }).toEqual({ code: 2, out: "", err: expect.stringContaining("unknown command 'nope'") });
    }
    expect(await createBench().run(["help", "dlq", "retry"])).toMatchObject({ code: 0 });
  });
});

describe("a drain that leaves work to nobody", () => {
  it.each([["hasOwnProperty"], ["constructor"]])("counts it, also where the type is called %s", async (type) => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    await bench.run(["enqueue", type, "{}"]);
    const { document } = await bench.json(["drain", "--jobs", "jobs.ts"]);
    expect(Object.entries(document.unserved as object)).toEqual([[type, 1]]);
  });
});
