// The seeds that every store has to get through.

/** Seeds that once found something in the library, in the simulation or in the checker; they join when that is fixed. */
export const REGRESSIONS: readonly number[] = [29, 31, 60, 288, 379, 673, 10_001, 10_007, 10_247, 10_535, 5078, 854];
