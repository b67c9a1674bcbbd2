// Repairs payloads on Postgres. The jobs are locked before they are compared, so that a redrive that comes between waits,
// or has come first and is seen.
import { isJobId } from "../../core/new-job.ts";
import type { Value } from "../columns.ts";
import { type PayloadChange, payloadFromRow, VERSION_COLUMNS } from "../payloads.ts";
import type { RepairAnswer, Store } from "../store.ts";
import { type Ask, type Context, NOW, placed, rounds } from "./context.ts";
import { payloadWriter } from "./redrives.ts";

/** The verbs about payloads. */
export function payloadVerbs({ db, questions, s }: Context): Pick<Store, "repair" | "payloads"> {
  const repair = repairer(s);
  const versions = {
    name: "payloads",
    text: `select ${VERSION_COLUMNS} from ${s}.payload_version v join ${s}.job j on j.seq = v.job_seq where j.id = $1 order by v.n`,
  };
  return {
    async repair(changes) {
      const answers: RepairAnswer[] = changes.map(() => "missing");
      const groups = rounds(
        placed(changes).filter(({ item }) => isJobId(item.id)),
        ({ id }) => id,
      );
      if (groups.length === 0) return answers;
      return db.together(async (ask) => {
        for (const group of groups) {
          const found = await repair(
            ask,
            group.map(({ item }) => item),
          );
          for (const { at, item } of group) answers[at] = found.get(item.id) ?? "missing";
        }
        return answers;
      });
    },
    payloads: async (id) =>
      isJobId(id) ? (await questions.ask(versions, id)).map((row) => payloadFromRow(row as Value[])) : [],
  };
}

/** Repairs jobs, each named once; answers by id, those that do not exist are missing. */
function repairer(s: string): (ask: Ask, changes: readonly PayloadChange[]) => Promise<Map<string, RepairAnswer>> {
  const look = {
    name: "repair_look",
    text: `select j.id, j.state = 'dead' and j.generation = u.generation
        and encode(sha256(convert_to(j.payload, 'UTF8')), 'hex') = u.was, ${NOW}
      from unnest($1::text[], $2::bigint[], $3::text[]) as u (id, generation, was) join ${s}.job j on j.id = u.id
      order by j.id for update of j`,
  };
  const addPayloads = payloadWriter(s);
  return async (ask, changes) => {
    const rows = (await ask(
      look,
      changes.map(({ id }) => id),
      changes.map(({ generation }) => generation),
      changes.map(({ was }) => was),
    )) as [string, boolean, number][];
    const found = new Map(rows.map(([id, isAsSeen]) => [id, isAsSeen ? "repaired" : "refused"] as const));
    const at = rows[0]?.[2] ?? 0;
    await addPayloads(
      ask,
      changes
        .filter(({ id }) => found.get(id) === "repaired")
        .map(({ id, payload, actor, why, redrive = null }) => ({ id, payload, at, actor, redrive, why })),
    );
    return found;
  };
}
