// Sets waiting jobs whose lane does not exist (damaged by hand, written by another version) aside as dead letters with
// all their data, so that they neither block other jobs nor wait unseen forever.
import { unreadableVerdict } from "../../core/verdict.ts";
import { UNREADABLE } from "../rows.ts";
import { tickLetters } from "./causes.ts";
import { noteEnded } from "./columns.ts";
import { type Context, NOW } from "./context.ts";
import { letterTeller } from "./redrives.ts";
import { freePlaces } from "./groups.ts";

/** Sets aside every waiting job whose lane does not exist. */
export function openQuarantine({ db, s, lanes }: Context): () => Promise<void> {
  const { reason, failure } = unreadableVerdict("names a lane that does not exist");
  const { name, message, fingerprint } = failure;
  const setAside = {
    text: `with stray as (
      delete from ${s}.waiting w where not exists (select from ${s}.lane l where l.base = w.lane - w.lane % 4) returning w.seq),
    dead as (
      update ${s}.job j set state = 'dead', lane = $1, finished_at = ${NOW}, updated_at = ${NOW}, failure = $2, error_message = $3
      from stray where j.seq = stray.seq and j.state = 'queued'
      returning j.seq, j.generation, j.attempts, j.crashes, j.max_attempts, j.expires_at),
    ${freePlaces(s, "stray")},
    ended as (${noteEnded(s, "dead", "dead")}),
    letter as (insert into ${s}.dead_letter (job_seq, generation, type, reason, error_class, error_name, error_message, fingerprint,
      attempts, crashes, max_attempts, died_at, failure)
    select seq, generation, $4, $7, $8, $5, $3, $6, attempts, crashes, max_attempts, ${NOW}, $2 from dead
    on conflict do nothing returning fingerprint, type, release),
    ${tickLetters(s, "died", "letter")} select seq from dead where generation > 1 order by seq`,
  };
  const tellLetters = letterTeller(s);
  return async () => {
    const laneOf = await lanes.intern([UNREADABLE]);
    const lane = laneOf(UNREADABLE);
    const dead = [message, UNREADABLE.type, name, fingerprint, reason, failure.class];
    await db.together(async (ask) => {
      const redriven = (await ask(setAside, lane, JSON.stringify(failure), ...dead)) as [number][];
      await tellLetters(
        ask,
        redriven.map(([seq]) => ({ seq, failed: fingerprint })),
        null,
      );
    });
  };
}
