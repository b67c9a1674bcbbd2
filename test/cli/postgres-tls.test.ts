// The command line and encrypted connections: what works, and what people are told where it does not.
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type Certificates, HAS_OPENSSL, makeCertificates } from "../support/certificates.ts";
import { createBench } from "../support/cli.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";

const ENQUEUE = ["enqueue", "thing", "{}", "--store"];

/** What a command on this store says when it ends with 3, in one line. */
async function refusal(store: string): Promise<string> {
  const { code, out, err } = await createBench().run([...ENQUEUE, store]);
  expect({ code, out }, err).toEqual({ code: 3, out: "" });
  expect(err.trimEnd().split("\n"), err).toHaveLength(1);
  expect(err).not.toMatch(/does not answer|\n\s+at /);
  return err;
}

describe("a server that does not encrypt", () => {
  it("is refused with both ways out, not called away", async () => {
    expect(await refusal(`${inject("postgres18")}?sslmode=verify-full`)).toMatch(
      /does not encrypt connections\. Set up TLS .*insecure=true/,
    );
  });
});

describe.skipIf(!HAS_OPENSSL)("a server that encrypts", () => {
  let files: Certificates;
  let server: PostgresServer;
  let late: PostgresServer;
  beforeAll(async () => {
    files = makeCertificates();
    const settings = { ssl: "on", ssl_key_file: files.key };
    [server, late] = await Promise.all([
      startPostgres({ settings: { ...settings, ssl_cert_file: files.valid } }),
      startPostgres({ settings: { ...settings, ssl_cert_file: files.expired } }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([server.stop(), late.stop()]);
    files.remove();
  });
  const at = ({ port }: PostgresServer, parts: string, host = "localhost"): string =>
    `postgres://postgres@${host}:${port}/postgres?${parts}`;
  const trusting = (): string => `sslmode=verify-full&sslrootcert=${encodeURIComponent(files.authority)}`;

  it("serves enqueues and workers of those who name its authority", async () => {
    const bench = createBench();
    const text = `import { defineJob } from "redrive"; export const thing = defineJob("thing", { run: () => 1 });`;
    const store = at(server, trusting());
    expect(await bench.run([...ENQUEUE, store])).toMatchObject({ code: 0 });
    const drained = await bench.run(["drain", "--jobs", bench.write("jobs.mjs", text), "--store", store]);
    expect(drained, drained.err).toMatchObject({ code: 0 });
    expect((await bench.json(["stats", "--store", store])).document.jobs).toMatchObject({ completed: 1 });
  });

  it("serves those who accept not to know who answers", async () => {
    const store = at(server, "sslmode=no-verify&insecure=true");
    expect(await createBench().run([...ENQUEUE, store])).toMatchObject({ code: 0 });
  });

  it.each([
    ["signed by nobody known", /UNABLE_TO_VERIFY_LEAF_SIGNATURE/, () => at(server, "sslmode=verify-full")],
    ["for another host", /ERR_TLS_CERT_ALTNAME_INVALID/, () => at(server, trusting(), "127.0.0.1")],
    ["that has ended", /CERT_HAS_EXPIRED/, () => at(late, trusting())],
  ])("with a certificate %s is refused with what to do", async (_what, code, store) => {
    const err = await refusal(store());
    expect(err).toMatch(code);
    expect(err).toMatch(/valid one for this host.*sslrootcert=FILE.*sslmode=no-verify&insecure=true/);
  });

  it("is not asked where the file of the authority is not there", async () => {
    const err = await refusal(at(server, "sslmode=verify-full&sslrootcert=/no/such/ca.crt"));
    expect(err).toMatch(/cannot be read \(ENOENT.*Check sslrootcert/);
  });
});
