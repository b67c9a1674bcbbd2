// Random commands about the event log: writes, some of them of what may be there once, and pages in both directions.
import fc from "fast-check";
import { command } from "./model-command.ts";

const kind = fc.constantFrom("pause", "release.seen");
const actor = fc.constantFrom("ada", "grace");
const subject = fc.constantFrom("queue:a", "\uffff", "😀");
const eventSpec = fc.record({
  kind,
  actor: fc.option(actor),
  why: fc.constantFrom(null, "because"),
  subject,
  value: fc.constantFrom("1", '{"a":"\\u0000"}'),
  intent: fc.constantFrom(null, 1, 3),
  once: fc.boolean(),
});

/** Writes events. */
export const record = command("record", fc.array(eventSpec, { maxLength: 4 }), (_, given) => {
  return (store) => store.record(given);
});

const querySpec = fc.record(
  {
    limit: fc.constantFrom(0, 1, 3, 200),
    cursor: fc.constantFrom("0", "2", "5"),
    oldest: fc.boolean(),
    kind,
    actor,
    subject,
    intents: fc.constantFrom([], [1], [3, 1]),
    ago: fc.constantFrom(0, 1_000, 60_000),
  },
  { requiredKeys: ["limit"] },
);

/** Reads a page of events. */
export const events = command("events", querySpec, (shared, { ago, ...query }) => {
  const from = ago === undefined ? {} : { from: shared.clock.now - ago };
  return (store) => store.events({ ...query, ...from });
});
