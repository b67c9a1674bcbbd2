// What a command may be and how much of it is kept: checked before anything runs.
import { describe, expect, it } from "vitest";
import { subprocess, type SubprocessOptions } from "../../src/jobs/subprocess.ts";

const made = (options: object): (() => unknown) => {
  const whole = { command: ["a"], timeout: 1, ...options };
  return () => subprocess(whole as SubprocessOptions);
};

describe("the options of a command", () => {
  it.each([
    ["a text", { command: "a b" }, "subprocess.command: expected"],
    ["no words", { command: [] }, "subprocess.command: expected"],
    ["a program without a name", { command: ["", "b"] }, "subprocess.command: expected"],
    ["a word that is no text", { command: ["a", 1] }, "subprocess.command: expected"],
    ["a batch file", { command: ["a.CMD"] }, "need a shell"],
    ["no time", { timeout: undefined }, "subprocess.timeout: expected"],
    ["another contract", { contract: "words" }, "subprocess.contract: expected"],
    ["keepAlive with the plain contract", { keepAlive: true }, "subprocess.keepAlive: expected"],
    ["a variable with its value", { env: ["A=1"] }, "subprocess.env: expected"],
    ["too little output", { outputBytes: 1_023 }, "subprocess.outputBytes: expected"],
    ["too much output", { outputBytes: 16 * 1_048_576 + 1 }, "subprocess.outputBytes: expected"],
    ["a name that is not known", { contarct: "lines" }, 'did you mean "contract"?'],
  ])("refuse %s", (_what, options, message) => {
    expect(made(options)).toThrow(message);
  });

  it.each([
    ["both contracts", [{ contract: "plain" }, { contract: "lines" }, { contract: "lines", keepAlive: true }]],
    ["the bounds of the output", [{ outputBytes: 1_024 }, { outputBytes: 16 * 1_048_576 }]],
    ["names of variables", [{ env: ["A", "B"] }]],
  ])("allow %s", (_what, all) => {
    for (const options of all) expect(made(options)).not.toThrow();
  });
});
