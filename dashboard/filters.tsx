// Filters whose values are the address: a filtered list is a link, and stays filtered after an action.
import { useRef, useState } from "preact/hooks";
import { address, replaceQuery, toWith } from "./address.ts";

/** A filter: a text, or one of several. */
export interface FilterField {
  readonly name: string;
  readonly says: string;
  readonly hint?: string;
  readonly choices?: readonly string[];
}

/** The filters of a list. */
export function Filters({ fields }: { fields: readonly FilterField[] }) {
  const { path, query } = address.value;
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  // What is being typed and is not in the address yet.
  const [draft, setDraft] = useState<Readonly<Record<string, string>>>({});
  const change = (name: string, value: string, isNow: boolean): void => {
    clearTimeout(timer.current);
    if (!isNow) setDraft({ [name]: value });
    const commit = (): void => {
      setDraft({});
      replaceQuery({ [name]: value.trim() });
    };
    if (isNow) commit();
    else timer.current = setTimeout(commit, 500);
  };
  const isFiltered = fields.some(({ name }) => query.has(name));
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      {fields.map(({ name, says, hint = "any", choices }) => (
        <label key={name} class={query.has(name) ? "set" : ""}>
          {says}
          {choices ? (
            <select
              value={query.get(name) ?? ""}
              onChange={({ currentTarget }) => change(name, currentTarget.value, true)}
            >
              <option value="">any</option>
              {choices.map((choice) => (
                <option key={choice} value={choice}>
                  {choice.replaceAll("_", " ")}
                </option>
              ))}
            </select>
          ) : (
            <input
              value={draft[name] ?? query.get(name) ?? ""}
              placeholder={hint}
              onInput={({ currentTarget }) => change(name, currentTarget.value, false)}
              onChange={({ currentTarget }) => change(name, currentTarget.value, true)}
            />
          )}
        </label>
      ))}
      {isFiltered && (
        <a class="quiet button" href={toWith(path, {})}>
          clear
        </a>
      )}
    </form>
  );
}

/** The filters of the address that are set. */
export function filtersOf(fields: readonly FilterField[]): Record<string, string> {
  const { query } = address.value;
  return Object.fromEntries(fields.flatMap(({ name }) => (query.get(name) ? [[name, query.get(name) as string]] : [])));
}
