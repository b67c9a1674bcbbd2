// Redrive beside its peers in one table: every round measures each of them once, so that they share whatever else the
// machine does; then one row for each, and one with what became of the goal.
import { against, median, row } from "../measure.mjs";

/** Measures each contender `rounds` times in turn; gives the values by name. */
export async function inTurn(contenders, rounds, measure) {
  const values = new Map(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const contender of contenders) values.get(contender.name).push(await measure(contender));
  return values;
}

/** One row for each of them, with what the figure says and a remark where there is one. */
export function rows(values, title, figure, remark = () => "") {
  for (const [name, all] of values) row(`${name}, ${title}`, figure(median(all)), remark(name));
}

/** The best of the peers' medians; `better` is `Math.max` for rates and `Math.min` for times. */
export function best(values, peers, better = Math.max) {
  const medians = peers
    .filter(({ name }) => values.has(name))
    .map(({ name }) => [name, median(values.get(name)).middle]);
  const [name, middle] = medians.find(([, each]) => each === better(...medians.map(([, one]) => one)));
  return { name, middle };
}

/** The row with the ratio to the best peer, or the reason why there is none. */
export function ratio(times, peer, goal, stretch) {
  const said = stretch ? `≥ ${goal} × (stretch ${stretch} ×${times >= stretch ? ": reached" : ""})` : `≥ ${goal} ×`;
  row(`  Redrive against ${peer}`, `${times.toFixed(1)} ×`, against(said, times >= goal));
}

/** The row that stands where peers would. */
export function without(missing) {
  row("  the peers", "–", missing);
}
