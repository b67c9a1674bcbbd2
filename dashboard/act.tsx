// A change that a person makes: a button that opens a small form with what it asks for, why, and the command that does the
// same. Nothing is sent before the form is. The answer stands where the button was.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { commandOf, Copy } from "./elements.tsx";
import { quoted } from "./format.ts";
import { may, saidOf } from "./server.ts";

/** A field of the form. */
export interface ActField {
  readonly name: string;
  readonly says: string;
  readonly value?: string;
  readonly hint?: string;
  readonly needed?: boolean;
}

type Values = Readonly<Record<string, string>>;

/** What a change is. */
export interface ActOptions {
  readonly label: string;
  /** What happens, in one sentence. */
  readonly says: ComponentChildren;
  /** The command that does the same, without the store's address; flags for the fields come from `flags`. */
  readonly command: (values: Values) => string;
  readonly fields?: readonly ActField[];
  readonly run: (values: Values) => Promise<unknown>;
  /** What the page says after it; default "Done." */
  readonly done?: (answer: never) => string;
  readonly needs?: "operator" | "admin";
  readonly kind?: "main" | "danger" | "quiet";
  readonly k?: string;
  readonly off?: string | null;
  /** Leave out the field `why`. */
  readonly noWhy?: boolean;
}

/** `--flag value`, or nothing for no value. */
export const flag = (name: string, value: string | undefined): string =>
  value === undefined || value === "" ? "" : ` --${name} ${quoted(value)}`;

/** The values that were filled in, for a body. */
export const filled = (values: Values): Record<string, string> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));

/** A change. */
export function Act(options: ActOptions) {
  const { label, needs = "operator", kind = "", k, off = null } = options;
  const [isOpen, setOpen] = useState(false);
  const [answer, setAnswer] = useState<string | null>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const lacks = may(needs) ? off : `It needs the role ${needs}.`;
  const close = (said: string | null): void => {
    setOpen(false);
    setAnswer(said);
    opener.current?.focus();
    if (said !== null) setTimeout(() => setAnswer(null), 6_000);
  };
  return (
    <span class="act">
      <button
        ref={opener}
        type="button"
        class={kind}
        disabled={lacks !== null}
        title={lacks ?? ""}
        data-key={k}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {label}
      </button>
      {answer !== null && (
        <span class="said" role="status">
          {answer}
        </span>
      )}
      {isOpen && <ActForm options={options} close={close} />}
    </span>
  );
}

function ActForm({ options, close }: { options: ActOptions; close: (said: string | null) => void }) {
  const { label, says, command, fields = [], run, done = () => "Done.", kind = "main", noWhy = false } = options;
  const all: readonly ActField[] = noWhy ? fields : [...fields, { name: "why", says: "Why, for the event log" }];
  const [values, setValues] = useState<Values>(Object.fromEntries(all.map(({ name, value = "" }) => [name, value])));
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const title = useId();
  useEffect(() => form.current?.querySelector<HTMLElement>("input, button")?.focus(), []);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      const answer = await run(values);
      close(done(answer as never));
    } catch (problem) {
      setError(saidOf(problem));
      setBusy(false);
    }
  };
  const line = commandOf(`${command(values)}${noWhy ? "" : flag("why", values["why"])}`);
  return (
    <div
      class="sheet"
      role="dialog"
      aria-labelledby={title}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        close(null);
      }}
    >
      <form ref={form} onSubmit={(event) => void send(event)}>
        <p id={title}>{says}</p>
        {all.map(({ name, says: what, hint, needed = false }) => (
          <label key={name}>
            {what}
            <input
              value={values[name]}
              required={needed}
              placeholder={hint ?? ""}
              onInput={({ currentTarget }) => setValues({ ...values, [name]: currentTarget.value })}
            />
          </label>
        ))}
        <div class="twin">
          <code>$ {line}</code> <Copy text={line} />
        </div>
        {error !== null && (
          <p class="problem" role="alert">
            {error}
          </p>
        )}
        <div class="row">
          <button type="submit" class={kind === "danger" ? "danger" : "main"} disabled={isBusy}>
            {label}
          </button>
          <button type="button" class="quiet" onClick={() => close(null)}>
            leave it
          </button>
        </div>
      </form>
    </div>
  );
}
