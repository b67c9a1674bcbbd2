// What is shown of a run between work and recovery: why jobs died, what SQL says about it, and what a worker logged.
import { readFileSync } from "node:fs";
import type { DeadLetter, Redrive } from "redrive";
import type { Run } from "./books.ts";
import { askAll } from "./queries.ts";
import { heading, line, quote, table, wrapped } from "./screen.ts";

const STACK_LINES = 3;

/** Shows the dead letters by class, each with an example, and returns them. */
export async function showDeaths(redrive: Redrive, { name }: Run): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = [];
  for await (const letter of redrive.deadLetters.all({ tenant: name })) letters.push(letter);
  heading(`${letters.length} dead letters`);
  const classes: string[] = [...new Set(letters.map(({ failure }) => failure.class))];
  table(
    classes.toSorted().map((each) => {
      const members = letters.filter(({ failure }) => failure.class === each);
      return { class: each, reason: members[0]?.reason, letters: members.length, example: members[0]?.failure.message };
    }),
  );
  return letters;
}

/** Runs the queries of queries.sql and shows what they answer. */
export async function showQueries(store: string, letters: readonly DeadLetter[]): Promise<void> {
  const one = letters.find(({ reason }) => reason === "exhausted") ?? letters[0];
  heading("The same with SQL (in full: npm run queries)");
  for (const { title, rows } of await askAll(store, one?.job.id ?? "none")) {
    line("query", title);
    const { error_stacktrace: stack, input_data: input } = rows[0] ?? {};
    if (typeof stack === "string" && typeof input === "string")
      quote([...stack.split("\n").slice(0, STACK_LINES), input].join("\n"));
    else table(rows);
  }
}

/** Shows what the workers logged about the job that used up its attempts. */
export function showLog({ workers }: Run, letters: readonly DeadLetter[]): void {
  const one = letters.find(({ reason }) => reason === "exhausted");
  if (one === undefined) return;
  heading("The log of the job that used up its attempts");
  const lines = workers.flatMap(({ log }) => readFileSync(log, "utf8").split("\n"));
  const about = lines.filter((each) => each.includes(one.job.id)).toSorted();
  // The time without its date, the message without the fields behind it.
  for (const each of about) wrapped(`${each.slice(11, 23)} ${each.slice(25).replace(/ (job|type)=\S+/g, "")}`);
}
