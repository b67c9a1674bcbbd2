// Writes metrics as the text that Prometheus reads, and as OpenMetrics, which has exemplars. Its form is checked with
// `promtool check metrics`.
import type { Exemplar, Labels, Metric } from "./metric.ts";

/** The two forms. */
export type MetricsFormat = "prometheus" | "openmetrics";

/** The media type of each form. */
export const MEDIA_TYPES: Readonly<Record<MetricsFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** The form that the `Accept` header of a request asks for. */
export function formatFor(accept: string | undefined): MetricsFormat {
  return accept?.includes("application/openmetrics-text") ? "openmetrics" : "prometheus";
}

/** The text of metrics; those without values are left out. */
export function metricsText(metrics: readonly Metric[], format: MetricsFormat = "prometheus"): string {
  const lines = metrics.flatMap((metric) => (metric.samples.length === 0 ? [] : linesOf(metric, format)));
  return `${[...lines, ...(format === "openmetrics" ? ["# EOF"] : [])].join("\n")}\n`;
}

function linesOf(metric: Metric, format: MetricsFormat): string[] {
  const { name, type, help } = metric;
  // OpenMetrics names a counter without the ending of its samples.
  const family = format === "openmetrics" && type === "counter" ? name.replace(/_total$/, "") : name;
  const head = [`# HELP ${family} ${escapedHelp(help, format)}`, `# TYPE ${family} ${type}`];
  if (metric.type !== "histogram")
    return [...head, ...metric.samples.map(({ labels, value }) => `${name}${labelsText(labels)} ${numberText(value)}`)];
  const rows = metric.samples.flatMap(({ labels, buckets, sum }) => [
    ...buckets.map(({ le, count, exemplar }) => {
      const bound = format === "openmetrics" ? floatText(le) : numberText(le);
      return `${name}_bucket${labelsText({ ...labels, le: bound })} ${count}${exemplarText(exemplar, format)}`;
    }),
    `${name}_sum${labelsText(labels)} ${numberText(sum)}`,
    `${name}_count${labelsText(labels)} ${buckets.at(-1)?.count ?? 0}`,
  ]);
  return [...head, ...rows];
}

function exemplarText(exemplar: Exemplar | undefined, format: MetricsFormat): string {
  if (!exemplar || format !== "openmetrics") return "";
  return ` # ${labelsText({ trace_id: exemplar.traceId })} ${numberText(exemplar.value)}`;
}

function labelsText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.toWellFormed().replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** Only OpenMetrics escapes quotes in help. */
function escapedHelp(help: string, format: MetricsFormat): string {
  return format === "openmetrics" ? escaped(help) : help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return String(value);
}

/** Bounds of OpenMetrics are floats. */
function floatText(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : numberText(value);
}
