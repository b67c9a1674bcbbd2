// Labelled failures for the fingerprint test: each key is one cause, its samples are how that cause shows up over
// hosts, releases and payloads. Written from messages that Node, drivers and services really produce.

/** One failure as it was seen. */
export interface Sample {
  readonly message: string;
  readonly name?: string;
  readonly fields?: object;
  readonly frames?: readonly string[];
}

type Values = readonly (string | number)[];

/** One sample per row, `{0}`, `{1}` … filled from it. */
function fill(template: string, rows: readonly Values[], rest: Omit<Sample, "message"> = {}): Sample[] {
  return rows.map((row, index) => ({
    ...rest,
    message: row.reduce<string>((text, value, at) => text.replaceAll(`{${at}}`, String(value)), template),
    frames: (rest.frames ?? ["handle (/app/src/jobs.ts:1:1)"]).map((frame) => moved(frame, index)),
  }));
}

/** The same frame in another release: other directory, other line. */
function moved(frame: string, index: number): string {
  const root = ["/app", "/srv/releases/20250114", "/opt/build-77", "C:\\deploy"][index % 4] ?? "/app";
  return frame.replace("/app", root).replace(/:\d+:\d+/, `:${10 + 7 * index}:${3 + index}`);
}

const ids: Values[] = [[1], [48_213], ["550e8400-e29b-41d4-a716-446655440000"], ["01HZX3V9K2"], ["usr_9f8e7d6c"]];
const hosts: Values[] = [["10.0.3.7"], ["10.0.9.120"], ["192.168.1.4"], ["127.0.0.1"]];
const files: Values[] = [["/data/in/cat.jpg"], ["/mnt/b/2024/dog 2.png"], ["/tmp/x"], ["C:\\in\\bird.gif"]];
const times: Values[] = [
  ["2024-01-02T03:04:05.678Z"],
  ["2025-11-30T23:59:59Z"],
  ["1736942400"],
  ["2025-01-15 12:00:00"],
];
const words: Values[] = [["bob"], ["o'neil"], ["Zoë Müller"], ["a b c"], [""]];
const mails: Values[] = [["bob@example.com"], ["x.y+z@mail.example.org"], ["sales-42@shop.io"]];
const tokens: Values[] = [["eyJhbGciOi1"], ["sk_live_51H"], ["9c1185a5c5e9fc54612808977ee8f548b2258d31"]];
const types = (word: string): Omit<Sample, "message"> => ({ name: word });
const code = (word: string | number, name = "Error"): Omit<Sample, "message"> => ({ name, fields: { code: word } });
const net = (word: string): Omit<Sample, "message"> => ({
  fields: { code: word },
  frames: ["TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16)"],
});

/** Samples by cause. */
export const CAUSES: Readonly<Record<string, readonly Sample[]>> = {
  "postgres refused": fill("connect ECONNREFUSED {0}:5432", hosts, net("ECONNREFUSED")),
  "redis refused": fill("connect ECONNREFUSED {0}:6379", hosts, net("ECONNREFUSED")),
  "connect timed out": fill("connect ETIMEDOUT {0}:443", hosts, net("ETIMEDOUT")),
  "connection reset": fill("read ECONNRESET", [[], [], []], net("ECONNRESET")),
  "dns of the api": fill("getaddrinfo ENOTFOUND api.example.com", [[], [], []], net("ENOTFOUND")),
  "dns of the bucket": fill("getaddrinfo ENOTFOUND bucket.example.com", [[], [], []], net("ENOTFOUND")),
  "fetch failed, refused": fill("fetch failed", [[], []], {
    name: "TypeError",
    fields: { cause: { code: "ECONNREFUSED" } },
  }),
  "fetch failed, dns": fill("fetch failed", [[], []], { name: "TypeError", fields: { cause: { code: "ENOTFOUND" } } }),
  "input missing": fill("ENOENT: no such file or directory, open '{0}'", files, code("ENOENT")),
  "input is a directory": fill("EISDIR: illegal operation on a directory, read '{0}'", files, code("EISDIR")),
  "disk full": fill("ENOSPC: no space left on device, write", [[], [], []], code("ENOSPC")),
  "too many files": fill("EMFILE: too many open files, open '{0}'", files, code("EMFILE")),
  "missing, unquoted": fill("Input file is missing: {0}", [
    ["/data/in/cat.jpg"],
    ["/mnt/b/dog.png"],
    ["C:\\in\\bird.gif"],
  ]),
  "user not found": fill("User {0} not found", ids),
  "order not found": fill("Order {0} not found", ids),
  "order already paid": fill("Order {0} is already paid", ids),
  "503 of the api": fill("Request failed with status code 503", [[], [], []], {
    name: "AxiosError",
    fields: { response: { status: 503 } },
  }),
  "500 of the api": fill("Request failed with status code 500", [[], [], []], {
    name: "AxiosError",
    fields: { response: { status: 500 } },
  }),
  "bare 502": fill("HTTP 502 from upstream after {0} ms", [[12], [5031], [77]]),
  "bare 504": fill("HTTP 504 from upstream after {0} ms", [[12], [5031], [77]]),
  "users endpoint": fill("GET https://api.example.com/v1/users/{0}?trace={0} failed", ids),
  "orders endpoint": fill("GET https://api.example.com/v1/orders/{0}?trace={0} failed", ids),
  "other host": fill("GET https://billing.example.net/v1/orders/{0} failed", ids),
  "users route": fill("POST /users/{0}/avatar returned nothing", ids),
  "duplicate mail": fill(
    'duplicate key value violates unique constraint "users_email_key"',
    [[], [], []],
    code("23505"),
  ),
  "duplicate sku": fill('duplicate key value violates unique constraint "items_sku_key"', [[], [], []], code("23505")),
  "missing column": fill('column "colour" does not exist', [[], []], code("42703")),
  "missing table": fill('relation "colours" does not exist', [[], []], code("42P01")),
  "mysql duplicate": fill(
    "Duplicate entry '{0}' for key 'users.email'",
    words.slice(0, 1).concat(words.slice(2)),
    code("ER_DUP_ENTRY"),
  ),
  deadlock: fill(
    "Process {0} waits for ShareLock on transaction {1}; blocked by process {2}",
    [
      [1, 2, 3],
      [44, 5666, 7],
      [9, 8, 70],
    ],
    code("40P01"),
  ),
  "statement timeout": fill("canceling statement due to statement timeout", [[], []], code("57014")),
  "read of price": fill("Cannot read properties of undefined (reading 'price')", [[], [], []], types("TypeError")),
  "read of name": fill("Cannot read properties of undefined (reading 'name')", [[], [], []], types("TypeError")),
  "same text, resize": fill("boom", [[], [], []], {
    frames: ["resize (/app/src/image.ts:1:1)", "run (/app/src/jobs.ts:5:5)"],
  }),
  "same text, upload": fill("boom", [[], [], []], {
    frames: ["upload (/app/src/store.ts:1:1)", "run (/app/src/jobs.ts:5:5)"],
  }),
  "same text, other class": fill("boom", [[], []], { name: "UploadError", frames: ["upload (/app/src/store.ts:1:1)"] }),
  "not a function": fill("ctx.report is not a function", [[], []], types("TypeError")),
  "not defined": fill("report is not defined", [[], []], types("ReferenceError")),
  "bad json token": fill(
    "Unexpected token '{0}', \"{1}\" is not valid JSON",
    [
      ["<", "<html>"],
      ["h", "hello"],
      ["o", "[object Obj"],
    ],
    types("SyntaxError"),
  ),
  "json cut short": fill("Unexpected end of JSON input", [[], []], types("SyntaxError")),
  "mail bounced": fill("Mail to {0} bounced", mails),
  "mail quota": fill("Mail quota of {0} is used up", mails),
  "token expired": fill("jwt expired at {0}", times, types("TokenExpiredError")),
  "bad token": fill("Token {0} was revoked", tokens),
  "unsupported codec": fill("Unsupported codec h264 in stream {0}", [[0], [1], [12]]),
  "unsupported codec 2": fill("Unsupported codec h265 in stream {0}", [[0], [1], [12]]),
  "ffmpeg exit": fill("ffmpeg exited with code {0} after {1}s", [
    [1, "1.5"],
    [255, 12],
    [137, "0.25"],
  ]),
  "run timed out": fill("The run took longer than {0}", [["30s"], ["1.5m"], ["250ms"]], types("TimeoutError")),
  "missing module sharp": fill("Cannot find module 'sharp'", [[], []], code("MODULE_NOT_FOUND")),
  "missing module canvas": fill("Cannot find module 'canvas'", [[], []], code("MODULE_NOT_FOUND")),
  "zod mail": fill(
    '[\n  {\n    "code": "invalid_type",\n    "path": [\n      "email"\n    ],\n    "message": "got {0}"\n  }\n]',
    [[1], [22]],
    types("ZodError"),
  ),
  "zod age": fill(
    '[\n  {\n    "code": "invalid_type",\n    "path": [\n      "age"\n    ],\n    "message": "got {0}"\n  }\n]',
    [[1], [22]],
    types("ZodError"),
  ),
  "tenant over limit": fill('Tenant "{0}" is over its limit of {1} jobs', [
    ["bob", 10],
    ["Zoë & Co", 5000],
    ["", 1],
  ]),
  "s3 key": fill("NoSuchKey: s3://media/{0}", [["a/b.jpg"], ["2024/01/x.png"], ["z"]], types("NoSuchKey")),
  "wrong checksum": fill("Checksum {0} differs from {1}", [
    ["9c1185a5", "0xdeadbeef"],
    ["77aa01b2", "0x1f"],
    ["d41d8cd98f00b204e980", "00ff00ff"],
  ]),
  "bundled release": [
    {
      message: "no frame",
      frames: ["a.b (/app/dist/chunk-3fa9c2.js:1:99)", "encodeFrame (/app/dist/chunk-3fa9c2.js:1:200)"],
    },
    {
      message: "no frame",
      frames: ["t.n (/srv/dist/chunk-77bb01.js:1:12)", "encodeFrame (/srv/dist/chunk-77bb01.js:1:30)"],
    },
    {
      message: "no frame",
      frames: ["e (/x/dist/index-9d0e.js:2:1)", "Object.encodeFrame (/x/dist/index-9d0e.js:2:3)"],
    },
  ],
  "inside a library": fill("boom", [[], [], []], {
    frames: [
      "parse (/app/node_modules/csv/lib/parse.js:1:1)",
      "process.processTicksAndRejections (node:internal/process:95:5)",
    ],
  }),
  // From here on: collected after the rules were written, and only the rule for bare file names was made for them.
  // Identifiers of letters alone (the last post, the first organization) look like words and are known misses.
  "mongo mail": fill(
    'E11000 duplicate key error collection: shop.users index: email_1 dup key: { email: "{0}" }',
    mails,
    code(11_000),
  ),
  "mongo sku": fill(
    'E11000 duplicate key error collection: shop.items index: sku_1 dup key: { sku: "{0}" }',
    ids,
    code(11_000),
  ),
  "prisma update": fill(
    "\nInvalid `prisma.user.update()` invocation:\n\n\nRecord to update not found.",
    [[], []],
    code("P2025"),
  ),
  "prisma unique": fill(
    "\nInvalid `prisma.user.create()` invocation:\n\n\nUnique constraint failed on the fields: (`email`)",
    [[], []],
    code("P2002"),
  ),
  "model rate limit": fill(
    "429 Rate limit reached in organization {0} on tokens per min (TPM): Limit {1}, Used {2}.",
    [
      ["org-abc", 20_000, 19_876],
      ["org-Zx1", 40_000, 39_999],
    ],
    { name: "RateLimitError", fields: { status: 429 } },
  ),
  "model context": fill(
    "400 This model's maximum context length is {0} tokens, your messages resulted in {1} tokens.",
    [
      [8192, 9001],
      [4096, 12_000],
    ],
    { fields: { status: 400 } },
  ),
  "no such customer": fill("No such customer: '{0}'", [["cus_NffrFeUfNV2Hib"], ["cus_9s6XKzkNRiz8i3"]], {
    fields: { statusCode: 404 },
  }),
  "card declined": fill("Your card was declined.", [[], []], { fields: { statusCode: 402 } }),
  "kafka broker": fill("Connection error: connect ECONNREFUSED {0}:9092", [["kafka-1"], ["kafka-2"], ["kafka-33"]]),
  "kafka leader": fill("There is no leader for this topic-partition (orders-{0})", [[0], [7], [12]]),
  "page not resolved": fill("net::ERR_NAME_NOT_RESOLVED at https://shop.example.com/p/{0}", [["123"], ["456?x=2"]]),
  "navigation timeout": fill("Navigation timeout of {0} ms exceeded", [[30_000], [60_000]], types("TimeoutError")),
  "jpeg cut short": fill("VipsJpeg: Premature end of JPEG image", [[], []]),
  "image format": fill("Input buffer contains unsupported image format", [[], []]),
  ffprobe: fill(
    "Command failed: ffprobe -v error {0}\n{0}: Invalid data found when processing input",
    [["/data/v/1.mp4"], ["/data/v/holiday.mov"]],
    code(1),
  ),
  "moov atom": fill("[mov,mp4,m4a,3gp,3g2,mj2 @ {0}] moov atom not found", [["0x55d0c8"], ["0x7f11aa"]]),
  "redis moved": fill(
    "MOVED {0} {1}:6381",
    [
      [3999, "10.0.0.1"],
      [12, "10.0.0.9"],
    ],
    types("ReplyError"),
  ),
  "redis memory": fill("OOM command not allowed when used memory > 'maxmemory'.", [[], []], types("ReplyError")),
  "sqlite mail": fill("UNIQUE constraint failed: users.email", [[], []], code("SQLITE_CONSTRAINT_UNIQUE")),
  "sqlite sku": fill("UNIQUE constraint failed: items.sku", [[], []], code("SQLITE_CONSTRAINT_UNIQUE")),
  "postgres uuid": fill('invalid input syntax for type uuid: "{0}"', [["abc"], ["42"], ["x-y"]], code("22P02")),
  "aws not authorized": fill("User: arn:aws:iam::{0}:user/bob may not sqs:SendMessage on arn:aws:sqs:{1}:{0}:orders", [
    [123_456_789_012, "eu-west-1"],
    [999_999, "us-east-1"],
  ]),
  "private post": fill("Instagram post {0} is private", [["ABC123"], ["C9x_-Q"], ["DHJkLm"]]),
  "deleted post": fill("Instagram post {0} was deleted", [["ABC123"], ["C9x_-Q"]]),
  "stuck run": fill("Run stuck for {0} - retry {1}/4 scheduled", [
    ["1.2h", 1],
    ["3.4h", 2],
  ]),
  "grpc unavailable": fill(
    "14 UNAVAILABLE: Last error: connect ECONNREFUSED {0}:443 ({1})",
    [
      ["10.1.1.1", "2025-01-02T03:04:05.000Z"],
      ["10.1.1.2", "2025-02-03T04:05:06.000Z"],
    ],
    { fields: { code: 14, details: "", metadata: {} } },
  ),
  "graphql colour": fill('Cannot query field "colour" on type "Product".', [[], []], types("GraphQLError")),
  "graphql size": fill('Cannot query field "size" on type "Product".', [[], []], types("GraphQLError")),
  "csv length": fill("Invalid Record Length: expect 7, got 6 on line {0}", [[3], [4051]], types("CsvError")),
  "no decoder": fill("No decoder for {0}.HEIC", [["IMG_0042"], ["IMG_1"], ["photo"]]),
};
