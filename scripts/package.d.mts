// The types of package.mjs, for the tests that use it.

/** A package.json as `npm init -y` leaves it. */
export const INITIAL: string;
/** Packs the package into the folder and says what is in it. */
export function pack(folder: string): { readonly tarball: string; readonly files: readonly string[] };
/** What is in the package and need not be, and what is missing. */
export function oddities(files: readonly string[]): string[];
/** What went wrong with library and command line in a project, or null. */
export function tryOut(project: string, node?: string): string | null;
/** What went wrong with the types, or null. */
export function typeCheck(project: string): string | null;
