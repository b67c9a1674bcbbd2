// Metrics as data: what a figure is called, what it means, and its values by label. Names of types and services are
// bounded, so that no program makes more series than a monitor can bear.

/** The values of labels by name. */
export type Labels = Readonly<Record<string, string>>;

/** One value. */
export interface MetricSample {
  /** What it is about; empty for the one value of a metric without labels. */
  readonly labels: Labels;
  readonly value: number;
}

/** A trace that shows one of the values of a bucket. */
export interface Exemplar {
  readonly traceId: string;
  readonly value: number;
}

/** The distribution of values. */
export interface MetricHistogram {
  readonly labels: Labels;
  /** The upper bound of each bucket with the number of values up to it; the last bound is Infinity. */
  readonly buckets: readonly { readonly le: number; readonly count: number; readonly exemplar?: Exemplar }[];
  readonly sum: number;
}

/** A metric with its values. */
export type Metric =
  | {
      readonly name: string;
      readonly type: "counter" | "gauge";
      /** What it counts, in a sentence. */
      readonly help: string;
      readonly samples: readonly MetricSample[];
    }
  | {
      readonly name: string;
      readonly type: "histogram";
      readonly help: string;
      readonly samples: readonly MetricHistogram[];
    };

/** A metric before it has values. */
export type MetricDefinition = Pick<Metric, "name" | "type" | "help">;

/** Most types, and most services, with a label of their own. */
export const NAMES_MOST = 64;
/** The label of all others. */
export const OTHER = "other";
/** No name of a type or a service is longer. */
const LENGTH_MOST = 128;

/** Gives the first names their own label, those that are configured before all others. */
export function boundedNames(configured: Iterable<string> = [], most: number = NAMES_MOST): (name: string) => string {
  const known = new Set<string>();
  const label = (name: string): string => {
    if (known.has(name)) return name;
    if (known.size >= most || name.length > LENGTH_MOST) return OTHER;
    known.add(name);
    return name;
  };
  for (const name of configured) label(name);
  return label;
}
