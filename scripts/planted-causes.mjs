// Defects of causes and triage that the tests must notice.

const RULES = ["test/core/recovery/cause-state.test.ts"];

/** Each as in planted-defects.mjs. */
export const CAUSE_DEFECTS = [
  {
    name: "a fix is broken by the order of version numbers instead of first sight",
    file: "src/core/recovery/cause-state.ts",
    was: "return from >= 0 && place >= from;",
    is: "return from >= 0 && release.localeCompare(fixing, undefined, { numeric: true }) >= 0;",
    tests: RULES,
  },
  {
    name: "a failure of a release seen before the fixing one reopens the cause",
    file: "src/core/recovery/cause-state.ts",
    was: "return from >= 0 && place >= from;",
    is: "return from >= 0;",
    tests: RULES,
  },
  {
    name: "a mute never ends",
    file: "src/core/recovery/cause-state.ts",
    was: "(until !== null && now >= until)",
    is: "(until !== null && now < 0)",
    tests: RULES,
  },
  {
    name: "workers do not send their release with their verdicts",
    file: "src/worker/settler.ts",
    was: "startedThrough: self.startedThrough, release };",
    is: "startedThrough: self.startedThrough };",
    tests: ["test/operate/triage.test.ts"],
    only: "on memory",
  },
  {
    name: "upkeep writes an event about a cause that the log has",
    file: "src/upkeep/causes.ts",
    was: "if (items.length === 0) await store.record([event]);",
    is: "await store.record([event]);",
    tests: ["test/upkeep/causes.test.ts"],
    only: "killed process",
  },
  {
    name: "triage takes the runs of other payloads as proof of a fix",
    file: "src/core/recovery/triage.ts",
    was: ': advise("canary", ran);\n}\n\n/** Code, or',
    is: ': advise(since.completed >= 100 ? "redrive" : "canary", ran);\n}\n\n/** Code, or',
    tests: ["test/core/recovery/triage.test.ts"],
  },
];
