// Planted defects of redrive runs: fences, outcomes, counts and recalls.

const SQLITE = ["test/conformance/sqlite.test.ts"];
const POSTGRES = ["test/store/postgres/redrives.test.ts"];

/** The same form as in planted-defects.mjs. */
export const REDRIVE_DEFECTS = [
  {
    name: "the cell of a fence is written before the chunk, in a transaction of its own",
    file: "src/store/postgres/redrives.ts",
    was: "if (fence && !(await writeFence(ask, fence)))",
    is: "if (fence && !(await db.together((own) => writeFence(own, fence))))",
    tests: POSTGRES,
    only: "leaves the cell of a fence",
  },
  {
    name: "a redrive writes the cell of its fence and does not heed the answer",
    file: "src/store/sqlite/redrives.ts",
    was: 'if (fence && !setCells([fence])[0]) return requests.map(() => "fenced");',
    is: "if (fence) setCells([fence]);",
    tests: SQLITE,
    only: "writes nothing where the cell has another version",
  },
  {
    name: "a redrive heeds the version of its fence and does not write the cell",
    file: "src/store/memory/redrives.ts",
    was: "if (fence && !setCell(tables, fence))",
    is: "if (fence && !setCell({ ...tables, cells: new Map(tables.cells) }, fence))",
    tests: ["test/conformance/memory.test.ts"],
    only: "writes the cell together with what it sends",
  },
  {
    name: "a recall lowers the generation",
    file: "src/store/sqlite/redrives.ts",
    was: "`update job set state = 'dead', placed = null,",
    is: "`update job set state = 'dead', generation = generation - 1, placed = null,",
    tests: SQLITE,
    only: "is refused for the old death",
  },
  {
    name: "a recall takes back a job that a worker has handed back",
    file: "src/store/sqlite/redrives.ts",
    was: "and generation = ? and releases = 0",
    is: "and generation = ?",
    tests: SQLITE,
    only: "is refused once a worker has taken the job",
  },
  {
    name: "a recall takes back a job that a worker runs",
    file: "src/store/sqlite/redrives.ts",
    was: "where id = ? and state = 'queued' and generation = ? and releases = 0",
    is: "where id = ? and state in ('queued', 'running') and generation = ? and releases = 0",
    tests: SQLITE,
    only: "is refused once a worker has taken the job",
  },
  {
    name: "a recall counts as a new death",
    file: "src/store/sqlite/redrives.ts",
    was: "causes.add({ fingerprint, type, release }, { redriven: -1 });",
    is: "causes.add({ fingerprint, type, release }, { deaths: 1 });",
    tests: SQLITE,
    only: "counts no new death",
  },
  {
    name: "an outcome is written after the transaction of its settle",
    file: "src/store/postgres/settle.ts",
    was: "holdsPlace(each) || isRedriven(each.item)",
    is: "holdsPlace(each)",
    tests: POSTGRES,
    only: "leaves a run unsettled",
  },
  {
    name: "the first failure of a redriven job is counted again when it dies",
    file: "src/core/recovery/outcome.ts",
    was: "isFirst && failed !== null ? (failed === letter.fingerprint",
    is: "failed !== null ? (failed === letter.fingerprint",
    tests: SQLITE,
    only: "of a job that failed and died",
  },
  {
    name: "a job that is not kept is not counted for the run that sent it",
    file: "src/store/postgres/settle.ts",
    was: 'return redriven ? "forgetRedriven" : "forget";',
    is: 'return redriven === null ? "forgetRedriven" : "forget";',
    tests: ["test/conformance/postgres.test.ts"],
    only: "postgres 18 outcome that is not kept counts as completed",
  },
];
