// Repairs payloads on SQLite.
import { payloadFromRow, payloadHash, VERSION_COLUMNS } from "../payloads.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";
import { payloadWriter } from "./redrives.ts";

/** The verbs about payloads. */
export function payloadVerbs(db: SqliteDatabase, clock: () => number): Pick<Verbs, "repair" | "payloads"> {
  const find = db.prepare("select state, generation, payload from job where id = ?");
  const versions = db.prepare(
    `select ${VERSION_COLUMNS} from payload_version v join job j on j.seq = v.job_seq where j.id = ? order by v.n`,
  );
  const addPayload = payloadWriter(db);
  return {
    repair: (changes) =>
      changes.map(({ id, generation, was, payload, actor, why, redrive = null }) => {
        const [row] = find.all(id) as [string, number, string][];
        if (!row) return "missing";
        const [state, current, before] = row;
        if (state !== "dead" || current !== generation || payloadHash(before) !== was) return "refused";
        addPayload(id, { payload, at: clock(), actor, redrive, why });
        return "repaired";
      }),
    payloads: (id) => versions.all(id).map(payloadFromRow),
  };
}
