// The families of known errors: how much of the list of real errors they get right, some cases of each family, and the
// numbers that mean different things in different protocols.

import { describe, expect, test } from "vitest";
import { type ClassifyRule } from "../../src/core/classify-rules.ts";
import { classify } from "../../src/core/classify.ts";
import type { FailureClass } from "../../src/core/job.ts";
import { cpuMs } from "../support/cpu-time.ts";
import { judgeCase, share } from "../support/judged-cases.ts";
import { halfOf, thrownCases } from "../support/thrown.ts";

const judge = (thrown: unknown, rules: readonly ClassifyRule[] = []): FailureClass =>
  classify(thrown, {}, rules, 0).class;
const error = (fields: object, message = "failed"): Error => Object.assign(new Error(message), fields);
const named = (name: string, message = "failed", fields: object = {}): Error => error({ name, ...fields }, message);

describe("the list of real errors", () => {
  const judged = thrownCases().map(judgeCase);

  test.each(["tuned", "unseen"])("has 95 % of classes and 97 % of retry decisions right in its %s half", (half) => {
    const cases = judged.filter(({ one }) => halfOf(one) === half);
    expect(cases.length).toBeGreaterThan(250);
    expect(share(cases.map(({ isClass }) => isClass)).percent).toBeGreaterThanOrEqual(95);
    expect(share(cases.map(({ isRetry }) => isRetry)).percent).toBeGreaterThanOrEqual(97);
  });
});

type Row = readonly [what: string, thrown: unknown, found: FailureClass];

describe("families", () => {
  const pg = (code: string, message = "failed") => named("error", message, { severity: "ERROR", code, routine: "r" });
  const mysql = (code: string, sqlState: string) => error({ code, errno: 1, sqlState });
  const prisma = (code: string, fields: object = {}) =>
    named("PrismaClientKnownRequestError", "x", { code, ...fields });
  const mongo = (code: number, fields: object = {}) => named("MongoServerError", "failed", { code, ...fields });
  const mongoose = (message: string) => new (class MongooseError extends Error {})(message);
  const kafka = (type: string, retriable: boolean) => named("KafkaJSProtocolError", "x", { type, retriable, code: 1 });
  const smtp = (responseCode: number, response: string) =>
    error({ code: "EENVELOPE", responseCode, response: `${responseCode} ${response}`, command: "RCPT TO" });
  const gql = (...codes: string[]) =>
    error({ response: { status: 200, errors: codes.map((code) => ({ message: "x", extensions: { code } })) } });
  const slack = (word: string) => error({ code: "slack_webapi_platform_error", data: { ok: false, error: word } });
  const aws = (name: string, status = 400) =>
    named(name, "x", { $fault: "client", $metadata: { httpStatusCode: status } });

  const mqtt = (code: number, text: string) => named("ErrorWithReasonCode", text, { code });
  const cassandra = (code: number) => named("ResponseError", "x", { info: "Represents an error message", code });
  const clickhouse = (code: string, type: string) =>
    Object.assign(new (class ClickHouseError extends Error {})("x"), { code, type });

  test.each<Row>([
    ["SQLSTATE 22P02", pg("22P02"), "validation"],
    ["SQLSTATE 23505", pg("23505"), "permanent"],
    ["SQLSTATE 28P01", pg("28P01"), "authentication"],
    ["SQLSTATE 42P01", pg("42P01"), "permanent"],
    ["SQLSTATE 0A000", pg("0A000"), "permanent"],
    ["SQLSTATE 40001", pg("40001"), "transient"],
    ["SQLSTATE 53100", pg("53100"), "system"],
    ["SQLSTATE 58030", pg("58030"), "system"],
    ["SQLSTATE 08006", pg("08006"), "network"],
    ["SQLSTATE 57014, a statement timeout", pg("57014", "canceling statement due to statement timeout"), "timeout"],
    ["SQLSTATE 57014, cancelled by a person", pg("57014", "canceling statement due to user request"), "transient"],
    ["SQLSTATE as a cause (drizzle)", new Error("Failed query", { cause: pg("23503") }), "permanent"],
    [
      "SQLSTATE as a driver's error (TypeORM)",
      named("QueryFailedError", "x", { driverError: pg("40P01") }),
      "transient",
    ],
    ["EPIPE, which is five letters and no SQLSTATE", error({ code: "EPIPE" }), "network"],
    ["PostgREST PGRST301", { code: "PGRST301", message: "JWT expired", details: null, hint: null }, "authentication"],
    ["MySQL duplicate", mysql("ER_DUP_ENTRY", "23000"), "permanent"],
    ["MySQL access denied, 42000 like a syntax error", mysql("ER_DBACCESS_DENIED_ERROR", "42000"), "authentication"],
    ["MySQL deadlock", mysql("ER_LOCK_DEADLOCK", "40001"), "transient"],
    ["MySQL by SQLSTATE alone", mysql("ER_SOMETHING_NEW", "22003"), "validation"],
    ["SQL Server deadlock", error({ code: "EREQUEST", number: 1205, class: 13 }), "transient"],
    ["SQL Server login", error({ code: "ELOGIN" }), "authentication"],
    ["SQL Server, a statement of the user", error({ code: "EREQUEST", number: 99_999, class: 15 }), "permanent"],
    ["SQLite by name", named("SqliteError", "x", { code: "SQLITE_LOCKED_SHAREDCACHE" }), "transient"],
    ["SQLite constraint", named("SqliteError", "x", { code: "SQLITE_CONSTRAINT_PRIMARYKEY" }), "permanent"],
    ["SQLite check", named("SqliteError", "x", { code: "SQLITE_CONSTRAINT_CHECK" }), "validation"],
    ["node:sqlite busy, extended", error({ code: "ERR_SQLITE_ERROR", errcode: 517 }), "transient"],
    ["node:sqlite full", error({ code: "ERR_SQLITE_ERROR", errcode: 13 }), "system"],
    ["Prisma P2002", prisma("P2002"), "permanent"],
    ["Prisma P2034", prisma("P2034"), "transient"],
    ["Prisma P2010 by the database's code", prisma("P2010", { meta: { code: "40001" } }), "transient"],
    ["Prisma at the start", named("PrismaClientInitializationError", "x", { errorCode: "P1000" }), "authentication"],
    ["Mongoose, buffering", mongoose("Operation `ts.findOne()` buffering timed out after 60ms"), "timeout"],
    ["Mongoose, anything else", mongoose("Query was already executed: T.find({})"), "transient"],
    ["Redis NOAUTH", named("ReplyError", "NOAUTH Authentication required."), "authentication"],
    ["Redis WRONGTYPE", named("ReplyError", "WRONGTYPE Operation against a key"), "permanent"],
    ["Redis OOM", named("ReplyError", "OOM command not allowed"), "system"],
    ["Redis ERR", named("ReplyError", "ERR syntax error"), "permanent"],
    ["Redis ERR of too many clients", named("ReplyError", "ERR max number of clients reached"), "transient"],
    ["ERR in another program's message", new Error("ERR could not do it"), "transient"],
    ["BUSY in another program's message", new Error("BUSY WRONG things"), "transient"],
    ["Mongo duplicate key", mongo(11_000), "permanent"],
    ["Mongo label", mongo(999, { errorLabels: ["TransientTransactionError"] }), "transient"],
    ["Mongo network", named("MongoNetworkError"), "network"],
    ["Mongo document too large", mongo(10_334), "validation"],
    ["SMTP 550", smtp(550, "5.1.1 No such user"), "permanent"],
    ["SMTP 451", smtp(451, "4.3.0 Try later"), "transient"],
    ["SMTP 535", smtp(535, "5.7.8 Bad credentials"), "authentication"],
    ["SMTP limit of a day", smtp(550, "5.4.5 Daily sending quota exceeded"), "rate_limited"],
    ["Kafka, marked retriable", kafka("NOT_LEADER_FOR_PARTITION", true), "transient"],
    ["Kafka, marked not retriable", kafka("TOPIC_ALREADY_EXISTS", false), "permanent"],
    ["Kafka authorization", kafka("GROUP_AUTHORIZATION_FAILED", false), "authentication"],
    [
      "Kafka, retries used up",
      named("KafkaJSNumberOfRetriesExceeded", "x", { retriable: false, cause: named("KafkaJSConnectionError") }),
      "network",
    ],
    ["GraphQL UNAUTHENTICATED", gql("UNAUTHENTICATED"), "authentication"],
    ["GraphQL, one of two passes", gql("BAD_USER_INPUT", "INTERNAL_SERVER_ERROR"), "transient"],
    ["GraphQL, one of two is a rate limit", gql("BAD_USER_INPUT", "THROTTLED"), "rate_limited"],
    ["GitHub's GraphQL", error({ errors: [{ type: "NOT_FOUND", path: ["a"], message: "x" }] }), "permanent"],
    ["tRPC", named("TRPCClientError", "x", { data: { code: "TOO_MANY_REQUESTS", httpStatus: 429 } }), "rate_limited"],
    ["tRPC on the server", named("TRPCError", "x", { code: "FORBIDDEN" }), "authentication"],
    ["Elasticsearch", named("ResponseError", "x", { meta: { statusCode: 404, body: {} } }), "permanent"],
    [
      "Elasticsearch version conflict",
      named("ResponseError", "version_conflict_engine_exception", { meta: { statusCode: 409, body: {} } }),
      "transient",
    ],
    ["ajv", error({ ajv: true, validation: true, errors: [] }), "validation"],
    ["ajv's findings thrown", [{ instancePath: "", keyword: "type", params: { type: "string" } }], "validation"],
    ["zod", named("ZodError"), "validation"],
    ["OAuth invalid_grant", error({ response: { status: 400, data: { error: "invalid_grant" } } }), "authentication"],
    ["OAuth slow_down", error({ error: "slow_down", status: 400 }), "rate_limited"],
    ["Slack channel_not_found", slack("channel_not_found"), "permanent"],
    ["Slack token_revoked", slack("token_revoked"), "authentication"],
    ["Slack invalid_blocks", slack("invalid_blocks"), "validation"],
    ["Slack ratelimited", slack("ratelimited"), "rate_limited"],
    ["Python ValueError", named("ValueError"), "validation"],
    ["Python ConnectionError", named("requests.exceptions.ConnectionError"), "network"],
    ["Python OSError 28", named("OSError", "[Errno 28] No space left on device"), "system"],
    [
      "boto3",
      named("ClientError", "An error occurred (ThrottlingException) when calling the X operation"),
      "rate_limited",
    ],
    ["Python HTTPError", named("HTTPError", "404 Client Error: Not Found for url: http://a.test/"), "permanent"],
    ["AWS word beside 400", aws("KmsThrottled"), "rate_limited"],
    ["AWS access", aws("AccessDeniedException"), "authentication"],
    [
      "DynamoDB transaction",
      Object.assign(aws("TransactionCanceledException"), { CancellationReasons: [{ Code: "ConditionalCheckFailed" }] }),
      "permanent",
    ],
    ["Azure", named("RestError", "x", { statusCode: 409, code: "QueueBeingDeleted" }), "transient"],
    ["Stripe lock", error({ type: "StripeInvalidRequestError", code: "lock_timeout", statusCode: 429 }), "transient"],
    ["OpenAI without credit", error({ status: 429, code: "insufficient_quota" }), "permanent"],
    ["Firebase", error({ code: "messaging/server-unavailable", errorInfo: {} }), "transient"],
    ["LDAP", named("NoSuchObjectError", "Not there. Code: 0x20", { code: 32 }), "permanent"],
    ["NATS", named("NatsError", "x", { code: "TIMEOUT" }), "timeout"],
    ["SSH login", error({ level: "client-authentication" }), "authentication"],
    ["Playwright", new Error("page.goto: net::ERR_CERT_DATE_INVALID at https://a.test/"), "permanent"],
    ["boom", error({ isBoom: true, output: { statusCode: 403 } }), "authentication"],
    ["a certificate", error({ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" }), "permanent"],
    ["a token", error({ code: "ERR_JWT_EXPIRED" }), "authentication"],
    ["a program that ran too long", error({ timedOut: true, exitCode: undefined }), "timeout"],
    ["a plain object", { statusCode: 503 }, "transient"],
    ["a plain object with a word", { code: "rate_limit_exceeded" }, "rate_limited"],
    ["a status in a text", new Error("Request failed with status code 422"), "validation"],
    ["a system code in a text", new Error("upload: connect ECONNREFUSED"), "network"],
    ["a timeout in a text", new Error("query timed out"), "timeout"],
    [
      "MQTT not authorized, beside the words of a lost connection",
      mqtt(5, "Connection refused: Not authorized"),
      "authentication",
    ],
    ["MQTT server busy", mqtt(137, "Connection refused: Server busy"), "transient"],
    ["MQTT topic", mqtt(144, "Publish error: Topic Name invalid"), "validation"],
    ["Neo4j syntax", named("Neo4jError", "x", { code: "Neo.ClientError.Statement.SyntaxError" }), "permanent"],
    ["Neo4j login", named("Neo4jError", "x", { code: "Neo.ClientError.Security.Unauthorized" }), "authentication"],
    [
      "Neo4j deadlock",
      named("Neo4jError", "x", { code: "Neo.TransientError.Transaction.DeadlockDetected" }),
      "transient",
    ],
    ["Cassandra syntax", cassandra(0x2000), "permanent"],
    ["Cassandra rights", cassandra(0x2100), "authentication"],
    ["Cassandra write timeout", cassandra(0x1100), "timeout"],
    ["a ResponseError of another library", named("ResponseError", "x", { code: 404 }), "permanent"],
    ["ClickHouse login", clickhouse("516", "AUTHENTICATION_FAILED"), "authentication"],
    ["ClickHouse table", clickhouse("60", "UNKNOWN_TABLE"), "permanent"],
    ["ClickHouse queries", clickhouse("202", "TOO_MANY_SIMULTANEOUS_QUERIES"), "rate_limited"],
    ["JSON-RPC method", { code: -32_601, message: "Method not found" }, "permanent"],
    ["JSON-RPC parameters", error({ code: -32_602 }), "validation"],
    ["JSON-RPC internal", { code: -32_603, message: "Internal error" }, "transient"],
    ["JSON:API", { errors: [{ status: "422", title: "Invalid Attribute" }] }, "validation"],
    ["Telegram, blocked", named("GrammyError", "x", { ok: false, error_code: 403 }), "authentication"],
    ["Telegram, no chat", named("GrammyError", "x", { ok: false, error_code: 400 }), "validation"],
    ["protobufjs", named("ProtocolError", "missing required 'a'", { instance: {} }), "validation"],
    ["luxon", new Error("Invalid DateTime: unparsable"), "validation"],
    ["an upload", named("MulterError", "File too large", { code: "LIMIT_FILE_SIZE" }), "validation"],
    ["tar", error({ code: "TAR_ENTRY_INVALID", tarCode: "TAR_ENTRY_INVALID" }), "permanent"],
    ["arguments of a program", error({ code: "ERR_PARSE_ARGS_UNKNOWN_OPTION" }), "validation"],
    ["git login", new Error("fatal: Authentication failed for 'https://a.test/x.git/'"), "authentication"],
    ["git host", new Error("fatal: unable to access 'https://a.test/': Could not resolve host: a.test"), "network"],
    ["socket.io", new Error("xhr poll error"), "network"],
    ["a breaker's timeout with a system code", error({ code: "ETIMEDOUT" }, "Timed out after 5ms"), "timeout"],
    ["a socket file that is not there yet", error({ code: "ENOENT", syscall: "connect" }), "network"],
    ["a file that is not there", error({ code: "ENOENT", syscall: "open" }), "permanent"],
    ["JSON cut off", new SyntaxError("Unexpected end of JSON input"), "transient"],
  ])("%s", (_what, thrown, found) => {
    expect(judge(thrown)).toBe(found);
  });

  test("leave an error of the user alone, whatever its name ends in", () => {
    for (const name of ["OrderNotFoundError", "InvoiceAlreadyExists", "InvalidCartState"]) {
      expect([name, judge(named(name))]).toEqual([name, "transient"]);
    }
  });

  test("come after the user's rules", () => {
    const rules: ClassifyRule[] = [{ class: "transient", code: "23505" }, (thrown) => Object(thrown).mine];
    expect(judge(pg("23505"), rules)).toBe("transient");
    expect(judge(Object.assign(pg("42601"), { mine: "system" }), rules)).toBe("system");
  });
});

describe("numbers that clash", () => {
  test.each<readonly [number: string, ...rows: (readonly [thrown: unknown, found: FailureClass])[]]>([
    [
      "13",
      [named("MongoServerError", "x", { code: 13, codeName: "Unauthorized" }), "authentication"],
      [error({ code: 13, details: "x", metadata: {} }), "transient"],
      [error({ code: 13 }), "transient"],
    ],
    [
      "6",
      [named("MongoServerError", "x", { code: 6, codeName: "HostUnreachable" }), "network"],
      [error({ code: 6, details: "x", metadata: {} }), "permanent"],
      [error({ code: 6 }, "No connection"), "network"],
    ],
    [
      "7",
      [named("MongoServerError", "x", { code: 7, codeName: "HostNotFound" }), "network"],
      [error({ code: 7, details: "x", metadata: {} }), "authentication"],
      [error({ code: 7 }, "Connection lost"), "network"],
    ],
    [
      "503",
      [error({ responseCode: 503, response: "503 5.5.1 Bad sequence", code: "EPROTOCOL" }), "permanent"],
      [error({ code: 503 }, 'Channel closed by server: 503 (COMMAND-INVALID) with message "x"'), "permanent"],
      [named("FTPError", "503 Bad sequence", { code: 503 }), "permanent"],
      [error({ status: 503 }), "transient"],
      [named("NatsError", "503", { code: "503" }), "transient"],
    ],
    [
      "550",
      [error({ responseCode: 550, response: "550 5.1.1 Unknown user", code: "EENVELOPE" }), "permanent"],
      [named("FTPError", "550 No such file", { code: 550 }), "permanent"],
      [error({ status: 550 }), "transient"],
    ],
    [
      "405",
      [error({ code: 405 }, 'Channel closed by server: 405 (RESOURCE-LOCKED) with message "x"'), "transient"],
      [error({ status: 405 }), "permanent"],
    ],
    [
      "21211",
      [error({ code: "21000" }), "permanent"],
      [error({ code: 21_211, status: 400 }), "validation"],
      [error({ code: 21_211 }), "transient"],
    ],
    ["2", [error({ code: 2 }, "No such file"), "permanent"], [error({ code: 2 }, "exited with code 2"), "transient"]],
  ])("%s", (_number, ...rows) => {
    for (const [thrown, found] of rows) expect(judge(thrown)).toBe(found);
  });
});

describe("cost", () => {
  test("is bounded for long messages and names that nearly match", async () => {
    const parts = ["connection ", "E", "ERR_", "status ", "time", "net::ERR_", "Code: 0x", "[Errno 1", "closed: 4"];
    const long = parts.map((part) => part.repeat(1_000_000));
    const look = (): void => {
      for (const text of long) {
        for (let n = 0; n < 50; n++) judge(error({ name: text, code: text, response: text, responseCode: 450 }, text));
      }
    };
    expect(await cpuMs(look)).toBeLessThan(2_000);
  });
});
