// Repairs payloads in memory.
import { payloadHash } from "../payloads.ts";
import type { Verbs } from "../verbs.ts";
import { addPayload } from "./redrives.ts";
import type { Tables } from "./tables.ts";

/** The verbs about payloads. */
export function payloadVerbs(tables: Tables): Pick<Verbs, "repair" | "payloads"> {
  return {
    repair: (changes) =>
      changes.map(({ id, generation, was, payload, actor, why, redrive = null }) => {
        const row = tables.jobs.get(id);
        if (!row) return "missing";
        const isAsSeen = row.state === "dead" && row.generation === generation && payloadHash(row.payload) === was;
        if (!isAsSeen) return "refused";
        if (payload !== row.payload) addPayload(tables, row, { payload, at: tables.clock(), actor, redrive, why });
        return "repaired";
      }),
    payloads: (id) => (tables.payloads.get(id) ?? []).map((version) => ({ ...version })),
  };
}
