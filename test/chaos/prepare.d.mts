// The types of prepare.mjs, for the tests that use it.

/** Compiles the library and the actors into the folder; the conductor is `test/chaos/main.js` there. */
export function compileChaos(folder: string): void;
