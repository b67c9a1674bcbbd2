// Finds the OpenTelemetry API, an optional package: only a program that asks for traces loads it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The package, and those of its types that spans are made with. */
export type OpenTelemetryApi = typeof import("@opentelemetry/api");
export type { Span, SpanContext, Tracer } from "@opentelemetry/api";

/** The package, with its version; or why there is none that can be used. */
export type FoundApi =
  | { readonly api: OpenTelemetryApi; readonly version: string; readonly why: null }
  | { readonly api: null; readonly version: string | null; readonly why: string };

/** The versions that work. */
export const API_RANGE = "^1.9.0";
const MAJOR = 1;
const MINOR = 9;

/** Loads the package, where it is installed in a version that works. */
export async function findOpenTelemetry(): Promise<FoundApi> {
  const version = installedVersion();
  if (version === null) return { api: null, version, why: "@opentelemetry/api is not installed" };
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major !== MAJOR || minor < MINOR)
    return { api: null, version, why: `@opentelemetry/api is ${version}, and ${API_RANGE} is needed` };
  try {
    return { api: await import("@opentelemetry/api"), version, why: null };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return { api: null, version, why: `@opentelemetry/api ${version} cannot be loaded: ${said}` };
  }
}

/** The version of the package that an import from here finds; null where there is none. */
function installedVersion(): string | null {
  try {
    const entry = createRequire(import.meta.url).resolve("@opentelemetry/api");
    // The package need not export its package.json, so that is looked for above its entry.
    for (let folder = dirname(entry); folder !== dirname(folder); folder = dirname(folder)) {
      const { name, version } = manifestIn(folder);
      if (name === "@opentelemetry/api") return String(version);
    }
  } catch {
    // Not installed.
  }
  return null;
}

function manifestIn(folder: string): { readonly name?: unknown; readonly version?: unknown } {
  try {
    return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as object;
  } catch {
    return {};
  }
}

/** True if an SDK is registered in this process; without one the API makes no spans. */
export function hasSdk(): boolean {
  const shared = (globalThis as Record<symbol, unknown>)[Symbol.for(`opentelemetry.js.api.${MAJOR}`)];
  return (shared as { readonly trace?: unknown } | undefined)?.trace !== undefined;
}
