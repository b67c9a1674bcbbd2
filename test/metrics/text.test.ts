// Metrics as text: the form of Prometheus, that of OpenMetrics with exemplars, and names that need escaping.
import { describe, expect, it } from "vitest";
import { boundedNames, type Metric } from "../../src/metrics/metric.ts";
import { formatFor, metricsText } from "../../src/metrics/text.ts";

const RUNS: Metric = {
  name: "redrive_runs_total",
  type: "counter",
  help: 'Runs, "all" of them.\nBy type \\ outcome.',
  samples: [{ labels: { type: "mail", outcome: "completed" }, value: 3 }],
};
const SECONDS: Metric = {
  name: "redrive_run_seconds",
  type: "histogram",
  help: "Duration.",
  samples: [
    {
      labels: { type: "mail" },
      buckets: [
        { le: 1, count: 2, exemplar: { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", value: 0.25 } },
        { le: Number.POSITIVE_INFINITY, count: 3 },
      ],
      sum: 9.5,
    },
  ],
};

describe("the text for Prometheus", () => {
  it("has help, type and a line for each value", () => {
    expect(metricsText([RUNS, SECONDS])).toBe(
      `${[
        '# HELP redrive_runs_total Runs, "all" of them.\\nBy type \\\\ outcome.',
        "# TYPE redrive_runs_total counter",
        'redrive_runs_total{type="mail",outcome="completed"} 3',
        "# HELP redrive_run_seconds Duration.",
        "# TYPE redrive_run_seconds histogram",
        'redrive_run_seconds_bucket{type="mail",le="1"} 2',
        'redrive_run_seconds_bucket{type="mail",le="+Inf"} 3',
        'redrive_run_seconds_sum{type="mail"} 9.5',
        'redrive_run_seconds_count{type="mail"} 3',
      ].join("\n")}\n`,
    );
  });

  it("leaves out a metric without values", () => {
    expect(metricsText([{ ...RUNS, samples: [] }])).toBe("\n");
  });

  it.each([
    ['a"b', 'a\\"b'],
    ["a\nb", "a\\nb"],
    ["a\\b", "a\\\\b"],
    ["\ud800", "\ufffd"],
  ])("escapes the label %j", (name, shown) => {
    const text = metricsText([{ ...RUNS, samples: [{ labels: { type: name }, value: 1 }] } as Metric]);
    expect(text).toContain(`redrive_runs_total{type="${shown}"} 1\n`);
    expect(text.split("\n")).toHaveLength(4);
  });
});

describe("OpenMetrics", () => {
  it("names counters without their ending, has exemplars, and an end", () => {
    const text = metricsText([RUNS, SECONDS], "openmetrics");
    expect(text).toContain("# TYPE redrive_runs counter\nredrive_runs_total{");
    expect(text).toContain(
      'redrive_run_seconds_bucket{type="mail",le="1.0"} 2 # {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"} 0.25\n',
    );
    expect(text.endsWith("\n# EOF\n")).toBe(true);
    expect(metricsText([SECONDS])).not.toContain("trace_id");
  });

  it.each([
    [undefined, "prometheus"],
    ["text/plain;version=0.0.4", "prometheus"],
    ["application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "openmetrics"],
  ])("is chosen by the header %s: %s", (accept, format) => expect(formatFor(accept)).toBe(format));
});

describe("names of labels", () => {
  it("are 64, those that are configured first, then other", () => {
    const label = boundedNames(["mine"]);
    const given = Array.from({ length: 100 }, (_, n) => label(`t${n}`));
    expect(new Set(given).size).toBe(64);
    expect([given[62], given[63], label("mine"), label("t0")]).toEqual(["t62", "other", "mine", "t0"]);
  });

  it("are no longer than a name can be", () => expect(boundedNames()("x".repeat(10_240))).toBe("other"));
});
