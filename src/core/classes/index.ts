// The registry of families, in the order in which they are asked. A family answers only for errors that are its own by
// their shape, so the order matters where shapes overlap: a number or a word that a protocol gives another meaning than
// HTTP or gRPC comes first, and words and texts that any program may use come last.

import { type Carried, read, readText } from "../error-shape.ts";
import type { FailureClass } from "../job.ts";
import { amqp } from "./amqp.ts";
import { aws, azure, elastic, firebase, storage, stripe, words } from "./apis.ts";
import { browser } from "./browser.ts";
import { cassandra } from "./cassandra.ts";
import { clickhouse } from "./clickhouse.ts";
import { type Clue, type Family } from "./clue.ts";
import { ftp } from "./ftp.ts";
import { graphql, trpc } from "./graphql.ts";
import { jsonrpc } from "./jsonrpc.ts";
import { kafka } from "./kafka.ts";
import { ldap } from "./ldap.ts";
import { mongo } from "./mongo.ts";
import { mqtt } from "./mqtt.ts";
import { mssql } from "./mssql.ts";
import { mysql } from "./mysql.ts";
import { nats } from "./nats.ts";
import { neo4j } from "./neo4j.ts";
import { oauth } from "./oauth.ts";
import { orm } from "./orm.ts";
import { classOfText } from "./phrases.ts";
import { prisma } from "./prisma.ts";
import { program } from "./program.ts";
import { python } from "./python.ts";
import { redis } from "./redis.ts";
import { schema } from "./schema.ts";
import { sftp } from "./sftp.ts";
import { slack } from "./slack.ts";
import { smtp } from "./smtp.ts";
import { postgrest, sqlstate } from "./sqlstate.ts";
import { sqlite } from "./sqlite.ts";
import { classOfWord } from "./words.ts";

/** Each family with the least that its errors carry: one that goes by a field need not be asked about an error without. */
const FAMILIES: readonly (readonly [Family, Carried])[] = [
  // Values.
  [schema, "nothing"],
  // Databases.
  [sqlstate, "code"],
  [postgrest, "code"],
  [mysql, "code"],
  [mssql, "code"],
  [sqlite, "code"],
  [prisma, "nothing"],
  [mongo, "nothing"],
  [redis, "nothing"],
  [neo4j, "code"],
  [cassandra, "more"],
  [clickhouse, "nothing"],
  [orm, "nothing"],
  // Protocols whose numbers look like HTTP's or gRPC's.
  [smtp, "code"],
  [ftp, "nothing"],
  [amqp, "nothing"],
  [kafka, "nothing"],
  [nats, "code"],
  [mqtt, "code"],
  [jsonrpc, "code"],
  [ldap, "code"],
  [sftp, "code"],
  // APIs whose word says more than the status.
  [graphql, "more"],
  [trpc, "code"],
  [oauth, "nothing"],
  [slack, "code"],
  [aws, "nothing"],
  [azure, "code"],
  [stripe, "more"],
  [firebase, "code"],
  [elastic, "more"],
  [storage, "more"],
  [words, "code"],
  // Programs.
  [browser, "nothing"],
  [program, "nothing"],
];

/** More than a number or the name of a built-in error. */
const SAYS_SOMETHING = /^(?!(?:Type|Range|Syntax|Reference)?Error$|Object$|[\d.]*$)/;

/** The families that are asked about errors that carry no more than this. */
const only = (carried: readonly Carried[]): readonly Family[] =>
  FAMILIES.filter(([, least]) => carried.includes(least)).map(([family]) => family);
const ASKED: Readonly<Record<Carried, readonly Family[]>> = {
  nothing: only(["nothing"]),
  code: only(["nothing", "code"]),
  more: only(["nothing", "code", "more"]),
};

/** The class that a family gives the error, asked before its HTTP status, gRPC status and system code. */
export function classByFamily(clue: Clue): FailureClass | undefined {
  for (const family of ASKED[clue.carries]) {
    const found = family(clue);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The class by words of names, codes and texts, asked when neither the error nor a cause says more. */
export function classByWords(clue: Clue): FailureClass | undefined {
  return python(clue) ?? byNames(clue) ?? classOfText(clue);
}

function byNames({ error, name, type, code, carries }: Clue): FailureClass | undefined {
  if (carries !== "more") return byName(code) ?? byName(name) ?? (type === name ? undefined : byName(type));
  const fields = ["errorCode", "status", "type", "error"].map((key) => readText(error, key));
  for (const text of new Set([code, ...fields.slice(0, 2), name, type, ...fields.slice(2)])) {
    const found = text === undefined ? undefined : byName(text);
    if (found !== undefined) return found;
  }
  return undefined;
}

function byName(text: string): FailureClass | undefined {
  return SAYS_SOMETHING.test(text) ? classOfWord(text) : undefined;
}

/** A word beside status 400 that says more than it: refused credentials or a rate limit. */
export function classBeside400({ code, name, type }: Clue): FailureClass | undefined {
  const found = [code, name, type].map((text) => (/^\d*$/.test(text) ? undefined : classOfWord(text)));
  return found.find((one) => one === "authentication" || one === "rate_limited");
}

/** Where libraries keep the error that they wrap, beside `cause`. */
const WRAPPED = [
  "original",
  "parent",
  "driverError",
  "originalError",
  "networkError",
  "detail",
  "lastError",
  "lastNodeError",
  "context",
  "error",
  "err",
  "reason",
  "innerError",
];
const MAX_WRAPPED = 8;

/** The errors that these errors wrap in fields of their own, and the causes of those; at most 8. */
export function wrappedIn(clues: readonly Clue[]): unknown[] {
  const found: unknown[] = [];
  const links = clues.map(({ error }) => error);
  for (const { error: link, carries } of clues) {
    if (carries !== "more") continue;
    for (const key of WRAPPED) {
      for (let inner = read(link, key); isObject(inner); inner = read(inner, "cause")) {
        if (found.length >= MAX_WRAPPED) return found;
        if (links.includes(inner) || found.includes(inner)) break;
        found.push(inner);
      }
    }
  }
  return found;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}
