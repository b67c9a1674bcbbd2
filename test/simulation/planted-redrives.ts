// Defects of stores and drivers to plant that are about redrive runs.
import type { BadStore, Defect } from "./planted.ts";

/** Each breaks what the books or the record of a run promise. */
export const BAD_REDRIVES: readonly BadStore[] = [
  {
    name: "a redrive writes the record of its run whatever version it has",
    rules: ["R21"],
    within: 60,
    foundBy: 2,
    settings: { runs: true },
    wrap: (store) => ({
      ...store,
      async redrive(requests, fence) {
        if (!fence) return store.redrive(requests);
        const [cell] = (await store.cells([{ kind: fence.kind, name: fence.name }])).cells;
        return store.redrive(requests, { ...fence, version: cell?.version ?? 0 });
      },
    }),
  },
  {
    name: "a verdict does not tell the letter of the run that sent its job",
    rules: ["R21"],
    within: 20,
    wrap: (store) => ({
      ...store,
      settle: (request) =>
        store.settle({ ...request, settlements: request.settlements.map(({ redriven: _redriven, ...rest }) => rest) }),
    }),
  },
];

/** Defects of drivers. */
export const DRIVER_DEFECTS: readonly Defect[] = [
  {
    name: "a driver sends letters apart from the record of its run",
    rules: ["R21"],
    within: 10,
    foundBy: 2,
    plant: async () => ({
      settings: { runs: true },
      sabotage: (store) => ({
        ...store,
        async redrive(requests, fence) {
          const [isWritten = true] = fence ? await store.setCells([fence]) : [];
          return isWritten ? store.redrive(requests) : requests.map(() => "fenced");
        },
      }),
    }),
  },
];
