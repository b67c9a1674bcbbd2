// Counting what the garbage collector leaves: a leak shows as objects that grow with the number of calls.
import { queryObjects } from "node:v8";

type Constructor = abstract new (...args: never[]) => object;

/** How many more objects of these kinds are alive after the work than before it. */
export async function grownBy(kinds: readonly Constructor[], work: () => Promise<unknown>): Promise<number[]> {
  const count = () => kinds.map((kind) => queryObjects(kind, { format: "count" }));
  const before = count();
  await work();
  // A weak reference holds its target until the turn is over.
  await new Promise((resolve) => setImmediate(resolve));
  return count().map((alive, at) => alive - (before[at] ?? 0));
}
