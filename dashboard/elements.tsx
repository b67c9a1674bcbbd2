// The small pieces every page is made of: states, times, ids, errors, empty states. Text reaches the page as text nodes only.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { to } from "./address.ts";
import { clock, now, relative, shortId } from "./format.ts";
import { heardAt, session } from "./server.ts";

/** The shape and the word of each state, beside its colour. */
const SHAPES: Readonly<Record<string, string>> = {
  queued: "○",
  scheduled: "◔",
  running: "▶",
  retrying: "↻",
  parked: "◫",
  paused: "‖",
  completed: "✓",
  dead: "✕",
  cancelled: "⊘",
  closed: "✓",
  open: "✕",
  half_open: "◐",
  isolated: "✕",
  healthy: "✓",
  degraded: "◐",
  unhealthy: "✕",
  muted: "‖",
  fixed: "✓",
  regressed: "⟲",
  stopped: "✕",
  alive: "✓",
  gone: "✕",
  ok: "✓",
  failed: "✕",
};

/** A state as shape, word and colour. `as` chooses the colour of another state. */
export function State({ of, as = of, says }: { of: string; as?: string; says?: string }) {
  return (
    <span class={`state is-${as}`}>
      <i aria-hidden="true">{SHAPES[of] ?? "·"}</i> {says ?? of.replaceAll("_", "-")}
    </span>
  );
}

/** A time: how long ago, the local time beside it, UTC on hover. */
export function When({ at, short = false }: { at: string | null; short?: boolean }) {
  if (at === null) return <span class="dim">–</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={`${at.replace("T", " ").replace("Z", "")} UTC`} class="when">
      {relative(ms, now.value)}
      {!short && <small> {clock(ms, now.value)}</small>}
    </time>
  );
}

/** An id in short form that leads to its page. */
export function JobLink({ id }: { id: string }) {
  return (
    <a class="mono" href={to("jobs", id)} title={id}>
      {shortId(id)}
    </a>
  );
}

/** A text that one click copies. */
export function Copy({ text, says = "copy", k }: { text: string | (() => string); says?: string; k?: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    await copyText(typeof text === "string" ? text : text());
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button type="button" class="quiet" data-key={k} onClick={() => void copy()}>
      {isDone ? "copied" : says}
    </button>
  );
}

async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS there is no clipboard but the old way.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "off";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** What a page says where there is nothing: what would be here, and how to get it. */
export function Empty({ says, command, children }: { says: string; command?: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>{says}</p>
      {command && <code>{command}</code>}
      {children}
    </div>
  );
}

/** What failed, since when, and what still holds; nothing where nothing failed. */
export function Problem({
  error,
  hasData = false,
  again,
}: {
  error: string | null;
  hasData?: boolean;
  again?: () => void;
}) {
  if (error === null) return null;
  return (
    <div class="problem" role="alert">
      <b>{error}</b>
      {hasData && <span> What is shown is as of {clock(heardAt.value, Date.now())}.</span>}
      {again && (
        <button type="button" class="quiet" onClick={again}>
          try again
        </button>
      )}
    </div>
  );
}

/** The state of a view that has no data yet. */
export function Waiting({ error, again }: { error: string | null; again?: () => void }) {
  if (error !== null) return <Problem error={error} {...(again && { again })} />;
  return <p class="dim waiting">Loading…</p>;
}

/** A titled part of a page. */
export function Part({
  title,
  more,
  children,
  class: name = "",
}: {
  title: ComponentChildren;
  more?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`part ${name}`}>
      <header>
        <h2>{title}</h2>
        {more && <div class="more">{more}</div>}
      </header>
      {children}
    </section>
  );
}

/** Facts as pairs. */
export function Facts({ of }: { of: readonly (readonly [name: string, value: ComponentChildren] | null | false)[] }) {
  return (
    <dl class="facts">
      {of.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** The head of a page: where it is, its title, one line about it, its actions. */
export function Head({
  path = [],
  title,
  says,
  children,
}: {
  path?: readonly (readonly [says: string, link: string])[];
  title: ComponentChildren;
  says?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <div class="head">
      <div>
        {path.length > 0 && (
          <nav class="crumbs" aria-label="Breadcrumb">
            {path.map(([name, link]) => (
              <a key={link} href={link}>
                {name} ›
              </a>
            ))}
          </nav>
        )}
        <h1>{title}</h1>
        {says && <p class="says">{says}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </div>
  );
}

/** The command that does the same, with the store's address. */
export function commandOf(args: string): string {
  const { name, shown } = session.value?.store ?? {};
  return shown && name !== "memory"
    ? `redrive --store ${/^[\w./:@%+=,-]+$/.test(shown) ? shown : `'${shown}'`} ${args}`
    : `redrive ${args}`;
}

/** The command line's twin of a page, at its foot. */
export function Twin({ of }: { of: string }) {
  const command = commandOf(of);
  return (
    <footer class="twin">
      <span class="dim">The same on the command line</span>
      <code>$ {command}</code>
      <Copy text={command} k="y" />
    </footer>
  );
}

/** A share as a bar with its figure. */
export function Meter({ share, says }: { share: number; says: string }) {
  const part = Math.max(0, Math.min(1, share));
  return (
    <span class="meter">
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect width="100" height="8" class="rest" />
        <rect width={part * 100} height="8" class="full" />
      </svg>
      {says}
    </span>
  );
}

/** Counts over time as small bars. */
export function Spark({ of, says, kind = "dead" }: { of: readonly number[]; says: string; kind?: string }) {
  const most = Math.max(1, ...of);
  const wide = 100 / Math.max(1, of.length);
  return (
    <svg class={`spark is-${kind}`} viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={says}>
      <title>{says}</title>
      {of.map((n, at) => {
        const high = n === 0 ? 0.6 : Math.max(2, (n / most) * 23);
        return <rect key={at} x={at * wide} y={24 - high} width={wide * 0.8} height={high} />;
      })}
    </svg>
  );
}
