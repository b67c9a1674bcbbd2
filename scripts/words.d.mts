// Types of words.mjs for tests.

/** A file by its path and content. */
interface Page {
  readonly path: string;
  readonly text: string;
}

/** The largest share of sentences that may name no actor. */
export const MOST_ACTORLESS: number;
/** What docs do not say, and what they say instead. */
export const PHRASES: readonly { readonly phrase: string; readonly instead: string }[];
/** The phrases that a page has and should not, each with its line. */
export function phrasesIn(page: Page): { readonly line: number; readonly phrase: string; readonly instead: string }[];
/** The sentences of a page. */
export function sentencesIn(text: string): string[];
/** How many sentences of these pages name no actor. */
export function countActorless(pages: readonly Page[]): {
  readonly sentences: number;
  readonly found: readonly { readonly path: string; readonly sentence: string }[];
  readonly share: number;
};
