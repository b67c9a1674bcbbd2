// Redrive for your own tests: a fake clock, work on demand, faults and assertions. Re-exports only.
export type { Assertions, DeadExpectation, EnqueuedExpectation, Expected } from "./assertions.ts";
export { collectLog, type CollectedLog, type LogLine } from "./collect-log.ts";
export { delays } from "./delays.ts";
export type { FaultOptions } from "./faults.ts";
export { perform, type Performed, type PerformOptions } from "./perform.ts";
export type { RunReport } from "./report.ts";
export type { DrainSummary, RunsOnDemand } from "./runs.ts";
export { createTestRedrive, type TestClock, type TestRedrive, type TestRedriveOptions } from "./test-redrive.ts";
