// What stands around every page: where one can go, search, whether the page is live, who is signed in, and the help.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { address, go, to, toWith } from "./address.ts";
import { now, span } from "./format.ts";
import { isHelpShown, PAGES } from "./keys.ts";
import { isPaused, live } from "./live.ts";
import { api, heardAt, session, trouble } from "./server.ts";

/** Whether the page is live; a click makes it stand still. */
function LiveLine() {
  // Read so that the line is drawn again each second.
  const age = now.value > 0 ? Date.now() - heardAt.value : 0;
  const isStale = trouble.value !== null || (live.value === "lost" && age > 5_000);
  const says = isPaused.value ? "‖ paused" : isStale ? `stale ${span(age, 1)}` : "● live";
  return (
    <button
      type="button"
      class={`live ${isPaused.value ? "" : isStale ? "is-stale" : "is-live"}`}
      aria-pressed={isPaused.value}
      title={isPaused.value ? "Show changes again" : "Let the page stand still"}
      onClick={() => (isPaused.value = !isPaused.value)}
    >
      {says}
    </button>
  );
}

/** Where a searched text leads. */
export function searchLink(text: string): string {
  const found = text.trim();
  if (/^r_\w+$/i.test(found)) return to("redrives", found);
  if (/^p_\w+$/i.test(found)) return to("plans", found);
  if (/^[0-9a-f]{16}$/.test(found)) return to("causes", found);
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(found)) return to("jobs", found);
  return toWith(["search"], { q: found });
}

function Search() {
  const submit = (event: Event): void => {
    event.preventDefault();
    const input = (event.currentTarget as HTMLFormElement).elements.namedItem("q") as HTMLInputElement;
    if (input.value.trim() !== "") go(searchLink(input.value));
    input.blur();
  };
  return (
    <form class="search" role="search" onSubmit={submit}>
      <input id="search" name="q" type="search" placeholder="id, key, type, cause, run  ( / )" aria-label="Search" />
    </form>
  );
}

const HELP: readonly (readonly [keys: string, does: string])[] = [
  ["/", "search"],
  ["j  k", "next and previous row"],
  ["x", "tick the row"],
  ["Enter", "open the row"],
  ["e", "explain"],
  ["p", "plan a redrive"],
  ["y", "copy the command"],
  ["Esc", "back"],
  ["?", "this help"],
];

function Help() {
  if (!isHelpShown.value) return null;
  return (
    <div class="help" role="dialog" aria-label="Keys">
      <h2>Keys</h2>
      <dl>
        {Object.entries(PAGES).map(([key, [name]]) => (
          <div key={key}>
            <dt>g {key}</dt>
            <dd>{name}</dd>
          </div>
        ))}
        {HELP.map(([keys, does]) => (
          <div key={keys}>
            <dt>{keys}</dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => (isHelpShown.value = false)}>
        close
      </button>
    </div>
  );
}

async function signOut(): Promise<void> {
  await api.session.end();
  location.reload();
}

/** The page with everything around it. */
export function Shell({ children }: { children: ComponentChildren }) {
  const { path } = address.value;
  const [own = ""] = path;
  const { actor = "", role = "", store, capabilities = [] } = session.value ?? {};
  const title = Object.values(PAGES).find(([, link]) => link === `#/${own}`)?.[0] ?? own;
  useEffect(() => {
    document.title = `${title || "Overview"} · Redrive`;
    scrollTo(0, 0);
    document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
  }, [path.join("/")]);
  return (
    <>
      <header class="top">
        <a class="brand" href="#/">
          <img src="icon.svg" alt="" width="20" height="20" /> Redrive
        </a>
        <Search />
        <LiveLine />
        <button type="button" class="quiet" aria-label="Keys" onClick={() => (isHelpShown.value = true)}>
          ?
        </button>
        <span class="who" title={store ? `${store.shown}, signed in as ${actor} (${role})` : ""}>
          {actor} <small>{role}</small>
          {capabilities.includes("sign-in") && (
            <button type="button" class="quiet" onClick={() => void signOut()}>
              sign out
            </button>
          )}
        </span>
      </header>
      <nav class="pages" aria-label="Pages">
        {Object.entries(PAGES).map(([key, [name, link]]) => (
          <a key={key} href={link} aria-current={link === `#/${own}` ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      {trouble.value !== null && (
        <div class="problem banner" role="alert">
          <b>{trouble.value}</b> What is shown is {span(Date.now() - heardAt.value, 1)} old. Workers go on without this
          page; it asks again by itself.
        </div>
      )}
      <main tabIndex={-1} class={trouble.value !== null ? "is-old" : ""}>
        {children}
      </main>
      <Help />
    </>
  );
}
