// What the library refuses before it asks the server anything, and what it refuses to work with.
import pg from "pg";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createRedrive } from "../../../src/index.ts";
import type { Ask } from "../../../src/store/postgres/driver.ts";
import { createPostgresStore, postgres } from "../../../src/store/postgres/index.ts";
import { findSchema } from "../../../src/store/postgres/migrate.ts";
import { type PostgresAddress, readPostgresAddress } from "../../../src/store/postgres/address.ts";

const URL_HERE = "postgres://app:hunter2@127.0.0.1:1/db";

function refused(call: () => unknown): Error {
  try {
    call();
  } catch (error) {
    expect(error).toMatchObject({ name: "RedriveError", code: "invalid_argument" });
    expect((error as Error).message).not.toContain("hunter2");
    return error as Error;
  }
  throw new Error("It was not refused.");
}

describe("postgres()", () => {
  it.each([[undefined], [null], [5], [true], [() => undefined]])(
    "refuses %s, as an empty variable gives it",
    (where) => {
      expect(refused(() => postgres(where as never)).message).toMatch(/^postgres: expected a URL, a pool or/);
    },
  );

  it.each([
    ["", /^store: expected postgres:\/\//],
    ["host/db", /^store: expected postgres:\/\//],
    ["postgres://app:hunter2@host:x/db", /^store: expected postgres:\/\//],
    [{}, /^postgres: expected a url or a pool; got "neither"/],
    [{ url: URL_HERE, pool: new pg.Pool() }, /^postgres: expected a url or a pool; got "both"/],
    [{ url: 5 }, /^store: expected postgres:\/\//],
    [{ pool: "postgres://app:hunter2@host/db" }, /^pool: expected a pool of pg/],
    [{ uri: URL_HERE }, /did you mean "url"\?/],
    [{ url: URL_HERE, schema: 5 }, /^schema: expected/],
    [{ url: URL_HERE, schema: "Jobs" }, /^schema: expected 1 to 48 small letters/],
    [{ url: URL_HERE, schema: "pg_jobs" }, /^schema: expected a name that Postgres does not use itself/],
    [{ url: URL_HERE, schema: "information_schema" }, /^schema: expected a name that Postgres does not use itself/],
    [{ url: URL_HERE, schema: "user" }, /^schema: expected a name that is not an SQL keyword/],
    [{ url: URL_HERE, maxConnections: 0 }, /^maxConnections: expected a whole number from 1 to 1000/],
    [{ url: URL_HERE, maxConnections: "5" }, /^maxConnections: expected/],
    [{ url: URL_HERE, pooler: "yes" }, /^pooler: expected true or false/],
  ])("refuses %j", (where, message) => {
    expect(refused(() => postgres(where as never)).message).toMatch(message);
  });

  it("asks nothing before it is used", async () => {
    const store = postgres(URL_HERE);
    await store.close();
    await expect(store.count()).rejects.toMatchObject({ code: "closed" });
  });

  it("asks again after a failure", async () => {
    const store = createPostgresStore({ url: URL_HERE });
    for (let n = 0; n < 2; n++) await expect(store.count()).rejects.toMatchObject({ code: "store_unavailable" });
    await store.close();
  });
});

describe("the place of a server", () => {
  it.each([
    ["postgres://app:hunter2@db.example.com/jobs", { tls: true, shown: "db.example.com:5432/jobs" }],
    ["postgresql://db.example.com:6543/jobs?sslmode=verify-full", { tls: false, shown: "db.example.com:6543/jobs" }],
    ["postgres://db.example.com/jobs?insecure=true", { tls: false }],
    ["postgres://db.example.com/jobs?sslmode=require&insecure=true", { tls: false }],
    ["postgres://localhost/jobs?sslmode=disable", { tls: false }],
    ["postgres://[::1]/jobs?sslmode=disable", { tls: false }],
    ["postgres:///jobs?host=/var/run/postgresql", { tls: false, shown: "/var/run/postgresql:5432/jobs" }],
    ["postgres://%2Fvar%2Frun/jobs", { tls: false }],
    ["postgres://localhost/jobs?host=db.example.com", { tls: true, shown: "db.example.com:5432/jobs" }],
    ["postgres://h/jobs?schema=a&pooler=true", { schema: "a", pooler: true, tls: true }],
  ])("is read from %s", (url, place) => {
    expect(readPostgresAddress({ url })).toMatchObject(place);
  });

  it("keeps what is the driver's in the URL, and only that", () => {
    const { url } = readPostgresAddress({
      url: "postgres://h:5/jobs?schema=a&pooler=true&insecure=true&application_name=x",
    });
    expect(url).toBe("postgres://h:5/jobs?application_name=x");
  });
});

describe("what a URL leaves out", () => {
  const named = { PGHOST: "db.example.com", PGPORT: "6543", PGUSER: "app", PGDATABASE: "jobs" };
  const where = (url: string, environment: Record<string, string> = named): PostgresAddress => {
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    return readPostgresAddress({ url });
  };

  it.each([
    ["postgres://", "db.example.com:6543/jobs"],
    ["postgres:///", "db.example.com:6543/jobs"],
    ["postgres:///other", "db.example.com:6543/other"],
    ["postgres://me:hunter2@/other", "db.example.com:6543/other"],
    ["postgres://me:hunter2@", "db.example.com:6543/jobs"],
    ["postgres://host", "host:6543/jobs"],
    ["postgres://host/other", "host:6543/other"],
    ["postgres:///other?port=1", "db.example.com:1/other"],
  ])("is taken from where pg takes it: %s leads to %s", (url, shown) => {
    const place = where(url);
    // Neither does a host that only the environment names get a connection that does not check it.
    expect(place).toMatchObject({ shown, tls: true });
    const client = new pg.Client({ connectionString: place.url as string });
    expect(`${client.host}:${client.port}/${client.database}`).toBe(shown);
  });

  it.each([
    ["postgres:///jobs", {}, "localhost:5432/jobs"],
    ["postgres://me:hunter2@/jobs?host=/cloudsql/a:b:c", {}, "/cloudsql/a:b:c:5432/jobs"],
    ["postgres:///jobs", { PGHOST: "/var/run/postgresql" }, "/var/run/postgresql:5432/jobs"],
    ["postgres://localhost", { PGUSER: "app" }, "localhost:5432/app"],
    ["postgres://it%40me@localhost", {}, "localhost:5432/it%40me"],
  ])("is on this host: %s with %j", (url, environment, shown) => {
    const place = where(url, { PGHOST: "", PGPORT: "", PGDATABASE: "", ...environment });
    expect(place).toMatchObject({ shown, tls: false });
  });

  it("is no way around the check of who answers", () => {
    expect(() => where("postgres:///jobs?sslmode=disable")).toThrow(
      /sslmode=disable to db\.example\.com would not check/,
    );
  });
});

describe("a server that is too old", () => {
  /** A server's answer, as an older version would give it. */
  const old: Ask = (statement) => {
    expect(statement.text).toContain("server_version_num");
    return Promise.resolve([[140_011, "14.11 (Debian 14.11-1)", "UTF8", false]]);
  };

  it("is refused with its version and the one that is needed, and asked nothing more", async () => {
    await expect(findSchema(old, "redrive", "db:5432/jobs")).rejects.toMatchObject({
      code: "store_unusable",
      message:
        "Postgres at db:5432/jobs is version 14.11 (Debian 14.11-1); Redrive needs 15 or newer. Upgrade the server.",
    });
  });
});

describe("createRedrive", () => {
  it("does not leave a connection behind where the server is not there", async () => {
    await expect(createRedrive({ store: URL_HERE, log: "silent" })).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/^Postgres at 127\.0\.0\.1:1\/db does not answer \(ECONNREFUSED/),
    });
  });
});
