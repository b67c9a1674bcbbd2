// What a searched text may mean: the key of jobs, or a type, a tenant, a part of an error.
import { address, to, toWith } from "../address.ts";
import { Empty, Head, Part, State, Waiting } from "../elements.tsx";
import { line } from "../format.ts";
import { useLoad } from "../live.ts";
import { api } from "../server.ts";

/** The page. */
export function Search() {
  const text = address.value.query.get("q") ?? "";
  const { data, error, again } = useLoad(
    `search ${text}`,
    async (options) => {
      const [byKey, byType, byError] = await Promise.all([
        api.jobs.list({ key: text, limit: 5, payloads: false }, options),
        api.jobs.list({ type: text, limit: 5, payloads: false }, options),
        api.letters.list({ text: text.slice(0, 200), limit: 5, payloads: false }, options),
      ]);
      return { byKey: byKey.items, byType: byType.items, byError: byError.items };
    },
    [],
    600_000,
  );
  if (!data) return <Waiting error={error} again={again} />;
  const found = [
    ["Jobs with this key", data.byKey, toWith(["jobs"], { key: text })],
    ["Jobs of this type", data.byType, toWith(["jobs"], { type: text })],
    ["Dead letters whose error has it", data.byError, toWith(["dead-letters"], { text })],
  ] as const;
  return (
    <>
      <Head title={`“${line(text, 60)}”`} says="Ids of jobs, runs, plans and causes lead to their pages at once." />
      {found.every(([, items]) => items.length === 0) && (
        <Empty says="Nothing has this key, this type, or an error with this text." />
      )}
      {found.map(
        ([title, items, link]) =>
          items.length > 0 && (
            <Part key={title} title={title} more={<a href={link}>all ›</a>}>
              <ul class="lines">
                {items.map((job) => (
                  <li key={job.id} data-row={job.id} tabIndex={-1}>
                    <State of={job.shown} /> {job.type}{" "}
                    <a href={to("jobs", job.id)}>
                      {line(job.failure ? `${job.failure.name}: ${job.failure.message}` : (job.key ?? job.id), 100)}
                    </a>
                  </li>
                ))}
              </ul>
            </Part>
          ),
      )}
    </>
  );
}
