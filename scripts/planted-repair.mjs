// Defects of repair, in the form of planted-defects.mjs.

/** Each with the tests that notice it. */
export const REPAIR_DEFECTS = [
  {
    name: "a merge patch parses the payload and writes it again",
    file: "src/core/recovery/merge-patch.ts",
    was: 'const after = pieces.join("");',
    is: 'const after = JSON.stringify(JSON.parse(pieces.join("")));',
    tests: ["test/core/recovery/merge-patch.test.ts"],
    only: "keeps",
  },
  {
    name: "the version of a payload is written outside the commit of the payload",
    file: "src/store/sqlite/redrives.ts",
    was: "if (next.run(payload, at, actor, redrive, why, id, payload) > 0) write.run(payload, id);",
    is: 'const isNew = next.run(payload, at, actor, redrive, why, id, payload) > 0;\n    db.exec("commit; begin immediate");\n    if (isNew) write.run(payload, id);',
    tests: ["test/store/payload-versions.test.ts"],
    only: "on sqlite",
  },
  {
    name: "a redrive that is refused writes its payload",
    file: "src/store/postgres/redrives.ts",
    was: "const changed = done\n      .map((place) => group[place - 1] as RedriveRequest)\n      .filter(",
    is: "const changed = group.filter(",
    tests: ["test/conformance/postgres.test.ts"],
    only: "none where it is refused",
  },
  {
    name: "a repair on Postgres compares the payload before it has locked the job",
    file: "src/store/postgres/payloads.ts",
    was: "order by j.id for update of j`",
    is: "order by j.id`",
    tests: ["test/store/postgres/racing-repairs.test.ts"],
  },
  {
    name: "a repair changes the digest of the job's key",
    file: "src/store/sqlite/payloads.ts",
    was: 'return "repaired";',
    is: 'db.prepare("update job_key set digest = ? where job_id = ?").run(payloadHash(payload), id);\n        return "repaired";',
    tests: ["test/conformance/sqlite.test.ts"],
    only: "leaves the key with the first body",
  },
  {
    name: "undo of a job that was sent forgets to recall it",
    file: "src/operate/repair.ts",
    was: 'const dead = job.state === "dead" ? job : await recall(store, job);',
    is: "const dead = job;",
    tests: ["test/operate/repair.test.ts"],
    only: "on memory undo restores",
  },
  {
    name: "a repair writes although some letters do not fit",
    file: "src/operate/repair.ts",
    was: "if (!skipMisfits) refuseMisfits(preview);",
    is: "",
    tests: ["test/operate/repair.test.ts"],
    only: "on memory a recipe that makes 3 of 100",
  },
];
