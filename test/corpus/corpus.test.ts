// The corpus of real errors: enough of them, each labelled, none from a build machine; and how well fingerprints tell
// their causes apart, over every build of the programs. `npm run prove -- corpus` prints the figures.

import { statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { classify } from "../../src/core/classify.ts";
import { failureFrom } from "../../src/core/failure.ts";
import { FILE, type LabelledError, readErrors, thrownOf } from "./errors.ts";
import { type Grouped, pairwise, recognised } from "./pairwise.ts";
import { isRead } from "./split.ts";

const errors = readErrors();
const isProof = process.env["REDRIVE_PROVE"] === "corpus";

function variantsByCause(): Map<string, Set<string>> {
  const variants = new Map<string, Set<string>>();
  for (const { cause, variant } of errors) variants.set(cause, (variants.get(cause) ?? new Set()).add(variant));
  return variants;
}

describe("the corpus of real errors", () => {
  it("has enough errors, causes, variants of each, and languages", () => {
    const variants = variantsByCause();
    expect(errors.length).toBeGreaterThanOrEqual(600);
    expect(variants.size).toBeGreaterThanOrEqual(100);
    expect([...variants].filter(([, each]) => each.size < 6)).toEqual([]);
    expect([...new Set(errors.map(({ language }) => language))].sort()).toEqual(["java", "node", "python"]);
    expect(statSync(FILE).size).toBeLessThanOrEqual(2 * 1024 ** 2);
  });

  it("has each cause at most once in a variant, and no line twice", () => {
    const places = errors.map(({ cause, variant }) => `${cause} in ${variant}`);
    expect(places.filter((place, i) => places.indexOf(place) !== i)).toEqual([]);
    const texts = errors.map((error) => JSON.stringify({ ...error, cause: "", variant: "" }));
    expect(texts.filter((text, i) => texts.indexOf(text) !== i)).toEqual([]);
  });

  it("stands in the order of its causes", () => {
    const causes = errors.map(({ cause }) => cause);
    expect(causes).toEqual(causes.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
  });

  it("names no folder of a build machine", () => {
    const foreign = /\/(?:tmp|root|home|work|Users|private|runner)\/|redrive|pyenv/i;
    expect(errors.filter((error) => foreign.test(JSON.stringify(error)))).toEqual([]);
  });

  it("does not tell its labels to those who read the errors", () => {
    const told = errors.filter(({ cause, ...error }) => JSON.stringify(error).includes(cause));
    expect(told).toEqual([]);
  });

  it("has causes that look alike under different labels", () => {
    const labels = (isAlike: (error: LabelledError) => boolean) =>
      new Set(errors.filter(isAlike).map(({ cause }) => cause)).size;
    expect(labels(({ message }) => /^Order .* not found$/.test(message))).toBeGreaterThanOrEqual(3);
    expect(labels(({ name, message }) => name === "ZodError" && message.includes('"number"'))).toBeGreaterThanOrEqual(
      2,
    );
    expect(labels(({ message }) => message === "division by zero")).toBeGreaterThanOrEqual(2);
    expect(labels(({ message }) => /^Site \w+ cannot be crawled$/.test(message))).toBeGreaterThanOrEqual(2);
    expect(labels(({ name }) => name === "java.lang.NumberFormatException")).toBeGreaterThanOrEqual(3);
  });
});

describe("fingerprints of the corpus", () => {
  const things = errors.map((error) => ({ ...error, label: error.cause, group: fingerprintOf(error) }));
  const read = things.filter(({ cause }) => isRead(cause));
  const unread = things.filter(({ cause }) => !isRead(cause));

  // Floors a little below what the rules reach, so that a change for the worse fails.
  it.each([
    ["the whole", things, 0.95],
    ["the half that the rules were made from", read, 0.96],
    ["the other half", unread, 0.94],
  ] as const)("tell causes apart, whatever the build: %s", (_name, some, floor) => {
    const { precision, f1 } = pairwise(some);
    expect(precision).toBeGreaterThanOrEqual(0.97);
    expect(f1).toBeGreaterThanOrEqual(floor);
  });

  it("has a good part of the causes in either half", () => {
    expect(new Set(read.map(({ cause }) => cause)).size).toBeGreaterThanOrEqual(60);
    expect(new Set(unread.map(({ cause }) => cause)).size).toBeGreaterThanOrEqual(60);
  });

  it.runIf(isProof)("prints precision, recall and F1 of the fingerprints", () => {
    const lines = [row("all", things), row("read", read), row("unread", unread)];
    for (const language of ["node", "python", "java"]) {
      lines.push(
        row(
          language,
          things.filter((thing) => thing.language === language),
        ),
      );
    }
    lines.push("", "pairs with other variants of the cause that are recognised:");
    for (const variant of new Set(errors.map((error) => error.variant))) {
      const share = recognised(things, (thing) => (thing as (typeof things)[number]).variant === variant);
      lines.push(`  ${variant.padEnd(28)}${(100 * share).toFixed(0).padStart(4)} %`);
    }
    console.log(lines.join("\n"));
  });
});

function fingerprintOf(error: LabelledError): string {
  const thrown = thrownOf(error);
  return failureFrom(thrown, classify(thrown, {}, [], 0)).fingerprint;
}

function row(name: string, things: readonly Grouped[]): string {
  const { precision, recall, f1 } = pairwise(things);
  const counts = `${things.length} errors of ${new Set(things.map(({ label }) => label)).size} causes`;
  const figures = `precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)}, F1 ${f1.toFixed(3)}`;
  return `${name.padEnd(8)}${counts.padEnd(30)}${figures}`;
}
