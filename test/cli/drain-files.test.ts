// The files of `drain --input --output`: those that may not be read or written, that are full, or that are the same.
import { chmodSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { openInput } from "../../src/cli/records-in.ts";
import { createBench } from "../support/cli.ts";
import { asNobody } from "../support/nobody.ts";

const NO_STDIN = { stdin: (async function* () {})() };

describe("an input", () => {
  it("that may not be read is refused before anything is done", () => {
    const bench = createBench();
    chmodSync(bench.folder, 0o755);
    chmodSync(bench.write("secret.ndjson", '{"id":1}\n'), 0o000);
    const io = { ...NO_STDIN, cwd: bench.folder };
    expect(() => asNobody(() => openInput(io, "secret.ndjson"))).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringMatching(
          /^input: expected a file that may be read; got "secret\.ndjson" \(EACCES: permission denied.*\); /,
        ),
      }),
    );
  });
});
