// The trace context of a job as text, and which runs may be part of the trace of their enqueue.
import { describe, expect, it } from "vitest";
import type { Job } from "../../src/core/job.ts";
import { isFirstRun, readTrace, traceMode, traceText } from "../../src/core/trace.ts";

const PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  flags: 1,
  state: null,
  isLink: false,
};

describe("a trace context", () => {
  it.each([
    ["alone", TRACE, PARENT],
    ["for links", { ...TRACE, isLink: true }, `link ${PARENT}`],
    ["with the state of vendors", { ...TRACE, flags: 0, state: "a=1,b=2" }, `${PARENT.replace(/01$/, "00")} a=1,b=2`],
  ])("is written and read again: %s", (_what, trace, text) => {
    expect(traceText(trace)).toBe(text);
    expect(readTrace(text)).toEqual(trace);
  });

  it("leaves out a state that is too long to store", () => {
    expect(traceText({ ...TRACE, state: "x".repeat(513) })).toBe(PARENT);
  });

  it.each([
    null,
    "",
    "x",
    PARENT.slice(1),
    PARENT.toUpperCase(),
    `${PARENT}0`,
    `${PARENT}\n`,
    `child ${PARENT}`,
    PARENT.replace("0af7651916cd43dd8448eb211c80319c", "0".repeat(32)),
    PARENT.replace("b7ad6b7169203331", "0".repeat(16)),
    PARENT.replace(/^00/, "ff"),
    `${PARENT} ${"x".repeat(513)}`,
    `${PARENT} \u0000`,
  ])("that is broken is none: %j", (text) => expect(readTrace(text)).toBeNull());
});

describe("a first run", () => {
  const job = { attempts: 0, crashes: 0, releases: 0, generation: 1 } as Job;
  it("is one that no other came before", () => expect(isFirstRun(job)).toBe(true));
  it.each([{ attempts: 1 }, { crashes: 1 }, { releases: 1 }, { generation: 2 }])("is none after %j", (before) => {
    expect(isFirstRun({ ...job, ...before })).toBe(false);
  });
});

describe("the option", () => {
  it.each([
    [undefined, null],
    [false, null],
    [true, "child"],
    ["link", "link"],
  ])("%j", (given, mode) => expect(traceMode(given)).toBe(mode));
  it.each(["child", "links", 1, {}])("refuses %j with what it takes", (given) => {
    expect(() => traceMode(given)).toThrow(/^traces: expected true, false or "link"; got /);
  });
});
