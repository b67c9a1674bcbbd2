// The plans of Postgres, flattened, for tests about how a statement goes to work.
import type pg from "pg";

/** A step of a plan. */
export interface PlanStep {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly "Join Filter"?: string;
  readonly "Actual Rows"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly PlanStep[];
}

interface Explained {
  readonly "QUERY PLAN": readonly { readonly Plan: PlanStep; readonly "Execution Time"?: number }[];
}

/** The steps of a query's plan, each before those it is fed by. */
export async function planOf(client: pg.ClientBase, text: string, values: unknown[] = []): Promise<PlanStep[]> {
  const { rows } = await client.query<Explained>(`explain (format json) ${text}`, values);
  return flat((rows[0] as Explained)["QUERY PLAN"][0]?.Plan as PlanStep);
}

/** The step and everything below it. */
export function flat(step: PlanStep): PlanStep[] {
  return [step, ...(step.Plans ?? []).flatMap(flat)];
}

/** Steps that read a whole table of those named. */
export function wholeTables(steps: readonly PlanStep[], tables: readonly string[]): PlanStep[] {
  return steps.filter((step) => step["Node Type"] === "Seq Scan" && tables.includes(step["Relation Name"] ?? ""));
}

/** Nested loops whose inner side is searched without an index, so that their cost is a product. */
export function products(steps: readonly PlanStep[]): PlanStep[] {
  return steps.filter((step) => {
    if (step["Node Type"] !== "Nested Loop") return false;
    const [, inner] = step.Plans ?? [];
    const isFiltered = step["Join Filter"]?.includes("=") ?? false;
    return isFiltered || !isByIndex(inner as PlanStep);
  });
}

/** True if whatever is read below is found by an index, or is one row. */
function isByIndex(step: PlanStep): boolean {
  const kind = step["Node Type"];
  if (/Index|Tid Scan|Bitmap/.test(kind)) return true;
  if (kind === "Nested Loop") return (step.Plans ?? []).every(isByIndex);
  return ["Limit", "LockRows", "Memoize", "Sort", "Subquery Scan", "Result"].includes(kind) && step.Plans !== undefined
    ? step.Plans.every(isByIndex)
    : kind === "Result";
}
