// The keyboard: two letters go to a page, `j` and `k` walk the rows, letters press what carries them (`data-key`). No single
// key destroys anything: they open forms, and a form is sent by its own button.
import { signal } from "@preact/signals";
import { go } from "./address.ts";

/** The pages behind `g`. */
export const PAGES: Readonly<Record<string, readonly [name: string, link: string]>> = {
  o: ["Overview", "#/"],
  j: ["Jobs", "#/jobs"],
  d: ["Dead letters", "#/dead-letters"],
  c: ["Causes", "#/causes"],
  r: ["Redrives", "#/redrives"],
  s: ["Services", "#/services"],
  q: ["Queues & limits", "#/queues"],
  h: ["Schedules", "#/schedules"],
  w: ["Workers", "#/workers"],
  a: ["Events", "#/events"],
  p: ["Policies", "#/policies"],
};

/** Whether the help is shown. */
export const isHelpShown = signal(false);

let isGoing = false;

const rows = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("[data-row]")];
const rowOf = (element: Element | null): HTMLElement | null => element?.closest<HTMLElement>("[data-row]") ?? null;

function walk(by: number): void {
  const all = rows();
  const at = all.indexOf(rowOf(document.activeElement) as HTMLElement);
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function press(key: string): boolean {
  const find = (within: ParentNode | null): HTMLElement | null =>
    within?.querySelector<HTMLElement>(`[data-key="${key}"]:not(:disabled)`) ?? null;
  const found = find(rowOf(document.activeElement)) ?? find(document);
  found?.click();
  return found !== null;
}

function onKey(event: KeyboardEvent): void {
  const { key, target } = event;
  const isTyping = target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  const isTick = target instanceof HTMLInputElement && target.type === "checkbox";
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (key === "Escape") {
    if (isHelpShown.value) isHelpShown.value = false;
    else if (isTyping) target.blur();
    else history.back();
    return;
  }
  if (isTyping && !isTick) return;
  if (isGoing) {
    isGoing = false;
    const page = PAGES[key];
    if (page) {
      event.preventDefault();
      go(page[1]);
    }
    return;
  }
  const row = rowOf(document.activeElement);
  if (key === "g") isGoing = true;
  else if (key === "?") isHelpShown.value = !isHelpShown.value;
  else if (key === "/") document.querySelector<HTMLElement>("#search")?.focus();
  else if (key === "j") walk(1);
  else if (key === "k") walk(-1);
  else if (key === "x") row?.querySelector<HTMLElement>("input[type=checkbox]")?.click();
  else if (key === "Enter" && row === document.activeElement) row?.querySelector<HTMLElement>("a")?.click();
  else if (!/^[epy]$/.test(key) || !press(key)) return;
  event.preventDefault();
}

/** Begins to hear keys. */
export function startKeys(): void {
  document.addEventListener("keydown", onKey);
}
