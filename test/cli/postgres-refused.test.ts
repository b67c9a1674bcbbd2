// The command line with a Postgres address that is wrong, unsafe or not Postgres at all: one clear line, the right exit
// code, no stack trace, no password, and soon.
import { createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { createBench, type Outcome } from "../support/cli.ts";
import { testSchema } from "../support/postgres-queue.ts";
import { sql } from "../support/postgres-world.ts";
import { freePort, type PostgresServer, startPostgres } from "../support/postgres-server.ts";

const SERVER = new URL(inject("postgres18"));
const PASSWORD = "hunter2";

/** Runs one command on a store, and checks what holds for every refusal. */
async function refusal(store: string, args: readonly string[] = ["enqueue", "thing", "{}"]): Promise<Outcome> {
  const outcome = await createBench().run([...args, "--store", store]);
  expect(outcome.out).toBe("");
  expect(outcome.err.trimEnd().split("\n"), outcome.err).toHaveLength(1);
  expect(outcome.err).not.toMatch(/\n\s+at |node_modules|this is a bug/);
  expect(outcome.err).not.toContain(PASSWORD);
  return outcome;
}

/** A server of our own making; ends with the test. */
async function listening(greet: (socket: Socket) => void): Promise<number> {
  const server: Server = createServer((socket) => {
    socket.on("error", () => undefined);
    greet(socket);
  });
  const open = new Set<Socket>();
  server.on("connection", (socket) => open.add(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as { port: number }).port;
}

describe("a URL that is none", () => {
  it.each([
    ["postgres:"],
    ["postgres:/"],
    [`postgres://app:${PASSWORD}@host:port/db`],
    [`postgres://app:${PASSWORD}@host:99999/db`],
    [`postgres://app:it's${PASSWORD}@host:99999/db`],
    [`postgres://app:a"b${PASSWORD}@host:99999/db`],
    [`postgres://app:a/b${PASSWORD}@host:99999/db`],
    [`mysql://app:${PASSWORD}@host/db`],
    [`postgres://app:100%${PASSWORD}@127.0.0.1:1/db`],
    [`postgres://a%zz:${PASSWORD}@/db`],
  ])("%s is refused before anything is asked", async (url) => {
    const { code, err } = await refusal(url);
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringMatching(/expected .*postgres:\/\/USER:\S+@HOST:PORT\/DATABASE; got/),
    });
  });
});

describe("a URL that leaves out what the environment says", () => {
  it("leads to where psql would go", async () => {
    const { schema } = testSchema(SERVER.href);
    const here = { PGHOST: SERVER.hostname, PGPORT: SERVER.port, PGUSER: SERVER.username, PGDATABASE: "postgres" };
    for (const [name, value] of Object.entries(here)) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    const bench = createBench();
    const { code, err } = await bench.run(["enqueue", "thing", "{}", "--store", `postgres://?schema=${schema}`]);
    expect({ code, err }).toMatchObject({ code: 0 });
    const { out } = await bench.run(["stats", "--json", "--store", `${SERVER.href}?schema=${schema}`]);
    expect(JSON.parse(out)).toMatchObject({ jobs: { queued: 1 } });
  });
});

describe("a URL that is none", () => {
  it.each([
    [`postgres:/app:${PASSWORD}@localhost/db`],
    [`postgres:app:${PASSWORD}@localhost/db`],
    [`postgres:///app:${PASSWORD}@localhost/db`],
    [`postgres:\\\\app:${PASSWORD}@localhost/db`],
    [`POSTGRES://app:${PASSWORD}@localhost/db`],
  ])("is refused without its password (%#)", async (url) => {
    const { code, err } = await refusal(url);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("expected") });
    expect(err).not.toContain(PASSWORD);
  });
});

describe("a schema that cannot be", () => {
  it.each([
    ['"quoted"'],
    ["Upper"],
    ["pg_x"],
    ["information_schema"],
    ["a".repeat(60)],
    ["1st"],
    ["a-b"],
    ["a.b"],
    ["a b"],
    ["täbelle"],
    ["x';drop table y;--"],
    [""],
  ])("%j is refused with the rule", async (schema) => {
    const { code, err } = await refusal(`${SERVER.href}?schema=${encodeURIComponent(schema)}`);
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringMatching(/^error: schema: expected .*; got .*; choose another name/),
    });
  });

  it.each([["user"], ["select"], ["order"], ["table"], ["default"]])(
    "%s is refused as a word of SQL",
    async (schema) => {
      const { code, err } = await refusal(`${SERVER.href}?schema=${schema}`);
      expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("a name that is not an SQL keyword") });
    },
  );

  it.each([["shema=x"], ["Schema=x"], ["schemas=x"], ["poolr=true"]])(
    "nor can %s, which means something else",
    async (part) => {
      const { code, err } = await refusal(`${SERVER.href}?${part}`);
      expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/did you mean "(schema|pooler)"/) });
    },
  );

  it.each([["pooler=yes"], ["pooler=1"], ["insecure=1"]])("nor can %s", async (part) => {
    const { code, err } = await refusal(`${SERVER.href}?${part}`);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("expected true or false") });
  });
});

describe("a schema that nobody has made", () => {
  it.each([["stats"], ["jobs", "list"], ["dlq", "list"], ["health"]])(
    "is not made by looking at it: %s %s",
    async (...args) => {
      const { schema, url } = testSchema(SERVER.href);
      const { code, err } = await refusal(url, args.filter(Boolean));
      expect({ code, err }).toEqual({ code: 3, err: expect.stringMatching(/^error: There is no store at .*make one/) });
      expect(await sql(SERVER.href, "select from pg_namespace where nspname = $1", [schema])).toEqual([]);
    },
  );

  it("is what the doctor finds, and leaves", async () => {
    const { schema, url } = testSchema(SERVER.href);
    const { code, out } = await createBench().run(["doctor", "--store", url]);
    expect({ code, out }).toEqual({ code: 3, out: expect.stringContaining("There is no store at") });
    expect(await sql(SERVER.href, "select from pg_namespace where nspname = $1", [schema])).toEqual([]);
  });
});

describe("a server that is not there", () => {
  it.each([
    ["a closed port", async () => `postgres://app:${PASSWORD}@127.0.0.1:${await freePort()}/db`],
    ["an unknown host", async () => `postgres://app:${PASSWORD}@no-such-host.invalid/db`],
  ])("behind %s ends every command with 3", async (_what, address) => {
    const store = await address();
    for (const args of [["enqueue", "thing", "{}"], ["migrate"], ["migrate", "--plan"], ["stats"], ["dlq", "list"]]) {
      const { code, err } = await refusal(store, args);
      expect({ code, err }).toEqual({
        code: 3,
        err: expect.stringMatching(/^error: Postgres at .* does not answer \(E/),
      });
    }
  });

  it("is what the doctor finds, and nothing worse", async () => {
    const { code, out, err } = await createBench().run([
      "doctor",
      "--store",
      `postgres://app:${PASSWORD}@127.0.0.1:${await freePort()}/db`,
    ]);
    expect(code).toBe(3);
    expect(out + err).toContain("does not answer");
    expect(out + err).not.toMatch(/hunter2|\n\s+at |this is a bug/);
    // What only another store needs is not checked.
    expect(out).not.toMatch(/^\w+ +sqlite /m);
  });
});

const STRANGERS: Readonly<Record<string, (socket: Socket) => void>> = {
  "answers in HTTP": (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
  "answers in HTTP and stays": (socket) => void socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"),
  "is MySQL": (socket) => void socket.write(Buffer.from("\x4a\0\0\0\x0a8.0.36\0\x08\0\0\0salted", "latin1")),
  "is Redis": (socket) => void socket.once("data", () => socket.write("-ERR unknown command\r\n")),
  "is SSH": (socket) => void socket.write("SSH-2.0-OpenSSH_9.2\r\n"),
  "talks nonsense": (socket) => void socket.write(Buffer.alloc(4_000, 0xff)),
};
const SILENT: Readonly<Record<string, (socket: Socket) => void>> = {
  "hangs up": (socket) => void socket.destroy(),
  "says nothing": () => undefined,
};

/** What becomes of a command on each; all at once, because each that says too little is waited for. */
function outcomes(strangers: typeof STRANGERS, parts = "") {
  const ends = Object.entries(strangers).map(async ([what, greet]) => {
    const port = await listening(greet);
    return { what, port, outcome: await refusal(`postgres://app:${PASSWORD}@127.0.0.1:${port}/db${parts}`) };
  });
  return Promise.all(ends);
}

describe("a server that is not Postgres", () => {
  it("is told from one that is away", async () => {
    for (const { what, port, outcome } of await outcomes(STRANGERS)) {
      expect(outcome.code, what).toBe(3);
      expect(outcome.err, what).toContain(`What answers at 127.0.0.1:${port}/db is not Postgres: it said "`);
    }
  });

  it("is told so also where it is asked to encrypt", async () => {
    const { "is SSH": _saysYes, ...others } = STRANGERS;
    for (const { what, outcome } of await outcomes(others, "?sslmode=verify-full"))
      expect(outcome, what).toMatchObject({
        code: 3,
        err: expect.stringMatching(/^error: What answers .* is not Postgres/),
      });
  });

  it("ends the command with 3 where it says nothing", async () => {
    for (const { what, port, outcome } of await outcomes(SILENT)) {
      expect(outcome.code, what).toBe(3);
      expect(outcome.err, what).toContain(`127.0.0.1:${port}/db does not answer`);
    }
  });
});

describe("a server that refuses us", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres({ password: PASSWORD });
  });
  afterAll(() => server.stop());
  const as = (login: string, database = "postgres"): string =>
    `postgres://${login}@127.0.0.1:${server.port}/${database}`;

  it("says so where the password is wrong", async () => {
    const { code, err } = await refusal(as("postgres:wrong"));
    expect({ code, err }).toEqual({
      code: 3,
      err: expect.stringMatching(/refused the password\. Check user and password/),
    });
    expect(err).not.toContain("wrong");
  });

  it("says so where there is no password", async () => {
    const { code, err } = await refusal(as("postgres"));
    expect({ code, err }).toEqual({ code: 3, err: expect.stringMatching(/asks for a password/) });
  });

  it("says so where the user is unknown", async () => {
    const { code, err } = await refusal(as(`nobody:${PASSWORD}`));
    expect({ code, err }).toEqual({ code: 3, err: expect.stringMatching(/refused the (password|login)/) });
  });

  it("says so where there is no such database", async () => {
    const { code, err } = await refusal(as(`postgres:${PASSWORD}`, "nowhere"));
    expect({ code, err }).toEqual({
      code: 3,
      err: expect.stringMatching(/database "nowhere" does not exist\. Create it/),
    });
  });

  it("works with the right password, and never shows it", async () => {
    const bench = createBench();
    const store = as(`postgres:${PASSWORD}`);
    for (const args of [["migrate"], ["enqueue", "thing", "{}"], ["stats"], ["doctor"], ["migrate", "--plan"]]) {
      const { code, out, err } = await bench.run([...args, "--store", store], { env: { REDRIVE_LOG: "debug" } });
      expect(code, err).toBe(0);
      expect(out + err).not.toContain(PASSWORD);
    }
  });
});

describe("an unsafe way to another host", () => {
  it.each([
    ["sslmode=disable"],
    ["sslmode=allow"],
    ["sslmode=prefer"],
    ["sslmode=require"],
    ["sslmode=no-verify"],
    ["ssl=0"],
    ["ssl=false"],
    ["sslmode=verify-full&sslmode=disable"],
  ])("is refused: %s", async (parts) => {
    const { code, err } = await refusal(`postgres://app:${PASSWORD}@db.example.com/db?${parts}`);
    expect({ code, err }).toEqual({ code: 78, err: expect.stringMatching(/sslmode=verify-full|insecure=true/) });
  });

  it.each([
    ["postgres://app:hunter2@localhost/db?host=db.example.com&sslmode=disable"],
    ["postgres:///db?host=db.example.com&sslmode=disable"],
    ["postgres:///db?host=%2Ftmp&host=db.example.com&sslmode=disable"],
  ])("is refused also where the host hides: %s", async (url) => {
    expect((await refusal(url)).code).toBe(78);
  });

  it("is refused as configuration also from the environment", async () => {
    const env = { REDRIVE_STORE: `postgres://app:${PASSWORD}@db.example.com/db?sslmode=disable` };
    const { code, err } = await createBench().run(["stats"], { env });
    expect({ code, err }).toEqual({ code: 78, err: expect.stringContaining("sslmode=disable to db.example.com") });
    expect(err).not.toContain(PASSWORD);
  });
});
