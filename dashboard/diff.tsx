// Two texts beside each other by lines, with messages at their line.
import { type DiffLine, diffOf } from "./json-text.ts";

const SIGNS: Readonly<Record<DiffLine["kind"], string>> = { same: " ", gone: "−", new: "+" };

/** What has changed. `issues` are by the line of the new text. */
export function Diff({
  before,
  after,
  issues,
}: {
  before: string;
  after: string;
  issues: ReadonlyMap<number, string>;
}) {
  return (
    <pre class="diff" aria-label="What changes">
      {diffOf(before, after).map(({ kind, text, at }, n) => {
        const issue = at === null ? undefined : issues.get(at);
        return (
          <div key={n} class={issue === undefined ? kind : `${kind} wrong`}>
            {SIGNS[kind]} {text}
            {issue !== undefined && <b> ← {issue}</b>}
          </div>
        );
      })}
    </pre>
  );
}
