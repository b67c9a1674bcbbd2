// Defects of the event log, in the form of planted-defects.mjs.

/** Each with the tests that notice it. */
export const EVENT_DEFECTS = [
  {
    name: "two transactions take the same number of the event log",
    file: "src/store/postgres/event-log.ts",
    was: "insert into ${s}.event_head as h (one, seq) select 1, count(*) from fresh having count(*) > 0\n    on conflict (one) do update set seq = h.seq + excluded.seq returning seq",
    is: "select coalesce(max(seq), 0) + (select count(*) from fresh) as seq from ${s}.event having exists (select from fresh)",
    tests: ["test/store/postgres/event-log.test.ts"],
    only: "misses no event",
  },
  {
    name: "an action that the store did not answer counts as failed",
    file: "src/report/event-log.ts",
    was: 'if (!isRedriveError(error, "store_unavailable"))',
    is: "if (error)",
    tests: ["test/operate/event-log.test.ts"],
    only: "did not answer",
  },
  {
    name: "an action fails where its outcome cannot be written",
    file: "src/report/event-log.ts",
    was: "log.warn({ kind, subject, intent: of, error: textOf(error) }, what);",
    is: "log.warn({ kind, subject, intent: of, error: textOf(error) }, what);\n          throw error;",
    tests: ["test/operate/event-log.test.ts"],
    only: "the action stands",
  },
  {
    name: "a probe that fails is an event",
    file: "src/core/event-log.ts",
    was: 'if (after.state === "open" && before.state === "half_open") return null;',
    is: "",
    tests: ["test/upkeep/event-log.test.ts"],
    only: "a breaker on memory",
  },
  {
    name: "every worker of a release is its first",
    file: "src/core/event-log.ts",
    was: '...ownEvent("release.seen", subjectOf("release", release), { worker }), once: true',
    is: '...ownEvent("release.seen", subjectOf("release", release), { worker })',
    tests: ["test/upkeep/event-log.test.ts"],
    only: "on memory leaves one event for a release",
  },
  {
    name: "each reaper writes that a worker was given up",
    file: "src/core/event-log.ts",
    was: '...ownEvent("worker.given_up", subjectOf("worker", worker), details), once: true',
    is: '...ownEvent("worker.given_up", subjectOf("worker", worker), details)',
    tests: ["test/upkeep/event-log.test.ts"],
    only: "two reapers on memory",
  },
  {
    name: "a store forgets which releases it has seen",
    file: "src/core/event-log.ts",
    was: 'LASTING_EVENTS: readonly string[] = ["release.seen"]',
    is: 'LASTING_EVENTS: readonly string[] = ["none"]',
    tests: ["test/conformance/memory.test.ts"],
    only: "never forgets which releases",
  },
  {
    name: "a schedule that is set to what it is leaves events",
    file: "src/schedules/schedules.ts",
    was: "if (found && isSame(found.definition, definition)) return set();",
    is: "",
    tests: ["test/operate/event-log.test.ts"],
    only: "memory has nothing of a schedule",
  },
];
