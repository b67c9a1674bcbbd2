// Types of planted-defects.mjs for tests.

/** A defect that was there once, and the tests that notice it. */
export interface PlantedDefect {
  readonly name: string;
  readonly file: string;
  readonly was: string;
  readonly is: string;
  readonly tests: readonly string[];
  readonly only?: string;
  /** The net that must find it too: the model test or the simulation. */
  readonly net?: { readonly tests: readonly string[]; readonly only?: string };
}
export const DEFECTS: readonly PlantedDefect[];
