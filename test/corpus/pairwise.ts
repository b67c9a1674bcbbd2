// How well groups meet labels, counted in pairs: two things of one label belong in one group, two of different labels in
// two. Precision says how many pairs of a group belong together, recall how many that belong together share a group.

/** One thing with the label that it has and the group that it was put in. */
export interface Grouped {
  readonly label: string;
  readonly group: string;
}

export interface Agreement {
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
}

/** The agreement of groups with labels; 1 where there was nothing to get wrong. */
export function pairwise(things: readonly Grouped[]): Agreement {
  const both = pairsOf(things.map(({ label, group }) => JSON.stringify([label, group])));
  const grouped = pairsOf(things.map(({ group }) => group));
  const labelled = pairsOf(things.map(({ label }) => label));
  const precision = grouped === 0 ? 1 : both / grouped;
  const recall = labelled === 0 ? 1 : both / labelled;
  return { precision, recall, f1: both === 0 ? Number(precision * recall) : harmonic(precision, recall) };
}

/** The share of one part's pairs with the others of its label that share a group; the part is not paired with itself. */
export function recognised(things: readonly Grouped[], isPart: (thing: Grouped) => boolean): number {
  let pairs = 0;
  let together = 0;
  for (const thing of things.filter(isPart)) {
    const others = things.filter((other) => other.label === thing.label && !isPart(other));
    pairs += others.length;
    together += others.filter(({ group }) => group === thing.group).length;
  }
  return pairs === 0 ? 1 : together / pairs;
}

const harmonic = (a: number, b: number): number => (2 * a * b) / (a + b);

/** How many pairs of equal texts there are. */
function pairsOf(texts: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts.values()].reduce((sum, count) => sum + (count * (count - 1)) / 2, 0);
}
