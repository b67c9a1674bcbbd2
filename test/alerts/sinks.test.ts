// The sinks of alerts: what they send, what they refuse, and that none of them takes longer than its time.
import { readFileSync, writeFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { resolveFleetAlerts } from "../../src/alerts/sink-options.ts";
import { openSink, signature } from "../../src/alerts/sinks.ts";
import { testMessage } from "../../src/core/alerting/message.ts";
import { HEALTH_LIMITS } from "../../src/core/health.ts";
import { isAllowed, parseAllow } from "../../src/system/addresses.ts";
import { type GuardedPost, guardedPost } from "../../src/system/guarded-post.ts";
import { realSystem } from "../../src/system/real.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { type Certificates, HAS_OPENSSL, makeCertificates } from "../support/certificates.ts";
import { testFolder } from "../support/database-file.ts";

const MESSAGE = { ...testMessage(1_800_000_000_000), kind: "raised", rule: "score", severity: "critical" } as const;
const NONE = parseAllow([], "allow");
const LOOPBACK = parseAllow(["127.0.0.1"], "allow");

/** The one sink of these options, besides the log. */
function sinkOf(sinks: object, system: Pick<typeof realSystem, "now" | "sleep"> = realSystem) {
  const log = collectLog();
  const [settings] = resolveFleetAlerts({ sinks: { log: false, ...sinks } }, HEALTH_LIMITS).sinks;
  if (!settings) throw new Error("These options have no sink.");
  return openSink(settings, { log, system });
}

/** Time limits pass at once. */
const hurried = { ...realSystem, sleep: (_ms: number, signal?: AbortSignal) => realSystem.sleep(300, signal) };

describe("addresses", () => {
  it.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2001::1",
    "localhost",
    "",
    "1.2.3",
  ])("%s is not public", (address) => {
    expect(isAllowed(address, NONE)).toBe(false);
  });

  it("that are public are allowed, and others where they are named", () => {
    for (const address of ["1.1.1.1", "172.32.0.1", "192.167.1.1", "2606:4700::1111"])
      expect(isAllowed(address, NONE)).toBe(true);
    const some = parseAllow(["10.0.0.0/8", "fd00::/8", "127.0.0.1"], "allow");
    for (const address of ["10.9.9.9", "::ffff:10.9.9.9", "fd12::1", "127.0.0.1"])
      expect(isAllowed(address, some)).toBe(true);
    for (const address of ["127.0.0.2", "11.0.0.1.1", "172.16.0.1", "fe80::1"])
      expect(isAllowed(address, some)).toBe(false);
    for (const wrong of [["a"], ["10.0.0.0/33"], ["10.0.0.0/x"], "10.0.0.1", [7]])
      expect(() => parseAllow(wrong, "allow")).toThrow("allow: expected");
  });
});

describe.skipIf(!HAS_OPENSSL)("a webhook", () => {
  let certificates: Certificates;
  beforeAll(() => (certificates = makeCertificates()));
  afterAll(() => certificates.remove());

  /** A server that answers so, and a message to it. */
  async function serve(
    listener: RequestListener,
  ): Promise<{ readonly port: number; readonly send: (more?: Partial<GuardedPost>) => Promise<string | null> }> {
    const server: Server = createServer(
      { cert: readFileSync(certificates.valid), key: readFileSync(certificates.key) },
      listener,
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void (server.closeAllConnections(), server.close()));
    const { port } = server.address() as AddressInfo;
    const post: GuardedPost = {
      url: new URL(`https://localhost:${port}/secret-path`),
      body: '{"a":1}',
      headers: {},
      allow: LOOPBACK,
      withinMs: 5_000,
      ca: readFileSync(certificates.authority, "utf8"),
      resolve: async () => [{ address: "127.0.0.1", family: 4 }],
    };
    return { port, send: (more = {}) => guardedPost({ ...post, ...more }) };
  }

  it("gets the body, and the address is resolved once and is the one that is connected to", async () => {
    const got: unknown[] = [];
    const { send } = await serve((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => {
        got.push([request.method, request.headers["content-type"], request.headers["x-a"], body]);
        response.writeHead(204).end();
      });
    });
    let asked = 0;
    const resolve = async () => ((asked += 1), [{ address: "127.0.0.1", family: 4 }]);
    expect(await send({ resolve, headers: { "x-a": "b" } })).toBe(null);
    expect(got).toEqual([["POST", "application/json", "b", '{"a":1}']]);
    expect(asked).toBe(1);
  });

  it("is refused before anything is sent where its name, or one of its addresses, leads inside", async () => {
    let requests = 0;
    const { port, send } = await serve((_request, response) => void ((requests += 1), response.end()));
    const inside = "is not a public address; name it in `allow`";
    expect(await send({ allow: NONE })).toContain(`localhost leads to 127.0.0.1, which ${inside}`);
    const both = async () => [
      { address: "1.1.1.1", family: 4 },
      { address: "::ffff:169.254.169.254", family: 6 },
    ];
    expect(await send({ allow: NONE, resolve: both })).toContain(inside);
    for (const host of ["127.0.0.1", "[::1]", "[::ffff:7f00:1]", "2130706433", "0x7f.1", "169.254.169.254"])
      expect(await send({ allow: NONE, url: new URL(`https://${host}:${port}/`) })).toContain(inside);
    expect(await send({ url: new URL(`http://localhost:${port}/`) })).toBe("expected https; got http");
    expect(requests).toBe(0);
  });

  it("that redirects, fails, floods or is not who it says is told as that, never with its path", async () => {
    let hops = 0;
    const { port, send } = await serve((request, response) => {
      hops += 1;
      if (request.headers["x-a"] === "500") response.writeHead(500).end("no");
      else if (request.headers["x-a"] === "flood") response.writeHead(200).end(Buffer.alloc(10_000_000));
      else response.writeHead(302, { location: `https://localhost:${port}/next` }).end();
    });
    expect(await send()).toBe("it answered 302; redirects are not followed");
    expect(hops).toBe(1);
    expect(await send({ headers: { "x-a": "500" } })).toBe("it answered 500");
    expect(await send({ headers: { "x-a": "flood" } })).toBe(null);
    const other = await send({ ca: readFileSync(certificates.expired, "utf8") });
    expect(other).toMatch(/certificate/);
    expect(other).not.toContain("secret-path");
  });

  it("that does not answer, or whose name does not, is given up after its time", async () => {
    const { send } = await serve(() => undefined);
    expect(await send({ withinMs: 200 })).toBe("localhost did not answer within 200 ms");
    expect(await send({ withinMs: 200, resolve: () => new Promise(() => undefined) })).toBe(
      "localhost did not answer within 200 ms",
    );
    expect(await send({ resolve: async () => [] })).toBe("localhost has no address");
    expect(await send({ resolve: () => Promise.reject(new Error("getaddrinfo ENOTFOUND localhost")) })).toContain(
      "ENOTFOUND",
    );
  });
});

describe("a signature", () => {
  it("is the HMAC of timestamp and body, as any receiver can compute it", () => {
    // echo -n '1800000000.{}' | openssl dgst -sha256 -hmac s3cret
    expect(signature("s3cret", "{}", 1_800_000_000_999)).toEqual({
      "redrive-timestamp": "1800000000",
      "redrive-signature": "v1=1cd77f07c7f231a8a17cd9bc413e578ccb209c24eb17a0577ce1eb9218a4f3ed",
    });
  });
});

describe("a command", () => {
  const command = (text: string, system = realSystem as typeof hurried) => {
    const file = join(testFolder(), "page.mjs");
    writeFileSync(file, text);
    return sinkOf(
      { command: { run: [process.execPath, file, "--team", "a b"], env: ["REDRIVE_TEST_SECRET"] } },
      system,
    );
  };

  it("gets the message on stdin, its arguments as they are, and only the variables that are named", async () => {
    const out = join(testFolder(), "told.json");
    const sink = command(`
      import { readFileSync, writeFileSync } from "node:fs";
      const names = Object.keys(process.env).filter((name) => !name.startsWith("__"));
      writeFileSync(${JSON.stringify(out)}, JSON.stringify({ args: process.argv.slice(2), names, message: JSON.parse(readFileSync(0, "utf8")) }));`);
    expect(await sink.tell(MESSAGE)).toBe(null);
    const { args, names, message } = JSON.parse(readFileSync(out, "utf8"));
    expect(args).toEqual(["--team", "a b"]);
    expect(names.filter((name: string) => !["PATH", "LANG", "TZ", "HOME"].includes(name))).toEqual([]);
    expect(message).toMatchObject({
      version: 1,
      kind: "raised",
      rule: "score",
      severity: "critical",
      since: "2027-01-15T08:00:00.000Z",
    });
  });

  it("that exits 1, prints 10 MB, hangs or does not exist is told as that", async () => {
    expect(await command("console.error('no pager'); process.exit(1)").tell(MESSAGE)).toBe(
      "it exited with 1: no pager",
    );
    const flood = await command("process.stderr.write('x'.repeat(10_000_000) + '\\n', () => process.exit(3))").tell(
      MESSAGE,
    );
    expect(flood).toMatch(/^it exited with 3: x{200}$/);
    const hung = await command("process.on('SIGTERM', () => {}); setInterval(() => {}, 1_000)", hurried).tell(MESSAGE);
    expect(hung).toMatch(/^it was killed after 5000 ms/);
    expect(await sinkOf({ command: { run: ["/nowhere/pager"] } }).tell(MESSAGE)).toContain("ENOENT");
  });
});

describe("a callback", () => {
  it("that throws or never ends is told as that; what it returns does not matter", async () => {
    expect(await sinkOf({ call: () => "fine" }).tell(MESSAGE)).toBe(null);
    expect(await sinkOf({ call: async () => Promise.reject(new Error("no line")) }).tell(MESSAGE)).toContain("no line");
    expect(
      await sinkOf({
        call: () => {
          throw null;
        },
      }).tell(MESSAGE),
    ).toEqual(expect.any(String));
    expect(await sinkOf({ call: () => new Promise(() => undefined) }, hurried).tell(MESSAGE)).toBe(
      "it has not ended within 5000 ms",
    );
  });
});

describe("options of sinks", () => {
  it.each<[object, string]>([
    [
      { sinks: { webhook: { url: "http://a.example/x?key=s3cret" } } },
      "alerts.sinks.webhook.url: expected an https URL without user and password",
    ],
    [{ sinks: { webhook: { url: "https://u:p@a.example/" } } }, "without user and password"],
    [{ sinks: { webhook: { url: "a" } } }, "webhook.url"],
    [
      { sinks: { webhook: { url: "https://a.example", allow: ["x"] } } },
      "alerts.sinks.webhook.allow: expected addresses",
    ],
    [{ sinks: { webhook: { url: "https://a.example", secret: "" } } }, "alerts.sinks.webhook.secret"],
    [{ sinks: { slack: { url: "https://a.example", secret: "x" } } }, "url, allow, severity"],
    [{ sinks: { slack: { url: "https://a.example", severity: "grave" } } }, "info, warning, error, critical"],
    [{ sinks: { command: { run: "page ops" } } }, "alerts.sinks.command.run: expected a list of texts"],
    [{ sinks: { command: { run: ["page.bat"] } } }, "needs no shell"],
    [{ sinks: { command: { run: ["page"], env: ["A=b"] } } }, "alerts.sinks.command.env"],
    [{ sinks: { call: "page" } }, "a function (message)"],
    [{ sinks: { log: "yes" } }, "alerts.sinks.log: expected true or false"],
    [{ sinks: { pager: {} } }, "log, call, webhook, slack, command"],
    [{ sinks: [] }, "an object with log, call"],
    [{ thresholds: {} }, "an object with rules, sinks"],
  ])("%o is refused", (options, message) => {
    expect(() => resolveFleetAlerts(options, HEALTH_LIMITS)).toThrow(message);
    expect(() => resolveFleetAlerts(options, HEALTH_LIMITS)).not.toThrow("s3cret");
  });

  it("name the host of a URL and nothing more, because its path may be a secret", () => {
    const { sinks } = resolveFleetAlerts(
      { sinks: { slack: { url: "https://hooks.example/T0/s3cret" } } },
      HEALTH_LIMITS,
    );
    expect(sinks.map(({ id, name }) => ({ id, name }))).toMatchObject([
      { name: "log" },
      { name: "slack hooks.example", id: expect.stringMatching(/^slack:[0-9a-f]{16}$/) },
    ]);
  });
});
