// Actors broken on purpose, to prove that a chaos run finds out. They sit between the recorder and the store, where a
// real defect would.
import type { EnqueueAnswer, Store } from "../../src/store/store.ts";
import { hashText } from "../support/history/event.ts";
import { type Sabotage, told } from "./told.ts";

/** One job in so many is forgotten. */
const FORGETS_EVERY = 20;

const BREAKS: Readonly<Record<Sabotage, (store: Store) => Partial<Store>>> = {
  /** Confirms some jobs that it never wrote. */
  forgetful: (store) => ({
    async enqueue(jobs) {
      const kept = jobs.filter(({ id }) => hashText(id) % FORGETS_EVERY !== 0);
      const answers = await store.enqueue(kept);
      return jobs.map((job): EnqueueAnswer => {
        const at = kept.indexOf(job);
        return at === -1 ? { kind: "created", id: job.id } : (answers[at] as EnqueueAnswer);
      });
    },
  }),
  /** Takes a refused verdict for a written one. */
  unfenced: (store) => ({
    settle: async (request) => ({ ...(await store.settle(request)), stale: [] }),
  }),
};

/** The store as this run wants it broken. */
export function sabotaged(store: Store): Store {
  const wanted = told("sabotage").split(",").filter(Boolean) as Sabotage[];
  return wanted.reduce((broken, name) => ({ ...broken, ...BREAKS[name](broken) }), store);
}
