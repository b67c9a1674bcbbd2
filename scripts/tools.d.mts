// The types of tools.mjs, for the tests that use it.

/** The programs that tests use where they are found, by the option that fetches each. */
export const TOOLS: Readonly<Record<"prometheus", { readonly isHere: () => boolean }>>;
