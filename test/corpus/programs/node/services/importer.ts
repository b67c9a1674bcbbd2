// Imports: CSV, YAML, JSON and packets of Postgres; what goes wrong in other people's files.

import { parse as parseLater } from "csv-parse";
import { parse } from "csv-parse/sync";
import { mkdir, readdir, rmdir, writeFile } from "node:fs/promises";
import { createGunzip, gunzipSync } from "node:zlib";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { join } from "node:path";
import { parse as readPackets } from "pg-protocol";
import { parse as parseYaml } from "yaml";
import type { Cause, Data } from "../data.ts";

class ImportFailed extends Error {
  override name = "ImportFailed";
}

function readProducts(text: string): unknown {
  return parse(text, { columns: true });
}

function readPrices(text: string): unknown {
  return parse(text, { columns: true });
}

async function readCustomers(text: string): Promise<number> {
  let rows = 0;
  for await (const row of Readable.from([text]).pipe(parseLater({ columns: true }))) rows += row ? 1 : 0;
  return rows;
}

function readSettings(text: string): unknown {
  return parseYaml(text);
}

function readWebhook(body: string): { id: string } {
  return JSON.parse(body) as { id: string };
}

function readConfig(body: string): unknown {
  return JSON.parse(body);
}

function unpack(text: string): Buffer {
  return gunzipSync(Buffer.from(text));
}

async function unpackStream(text: string): Promise<void> {
  await pipeline(Readable.from([Buffer.from(text)]), createGunzip(), async function drain(source) {
    for await (const part of source) void part;
  });
}

const rowOf = (d: Data): string[] => [String(d.id), d.name];

const importRow = async (row: string[], number: number): Promise<void> => {
  await Promise.resolve();
  if (row.length < 3) throw new ImportFailed(`Row ${number} has ${row.length} columns: ${row.join(";")}`);
};

const importFile = async (d: Data): Promise<void> => {
  const rows = [rowOf(d)];
  await Promise.all(rows.map((row, i) => importRow(row, d.other + i)));
};

/** The packet with which a Postgres server says what it did not like. */
function errorPacket(fields: Record<string, string>): Buffer {
  const body = Object.entries(fields).map(([key, value]) => `${key}${value}\0`);
  const text = Buffer.from(`${body.join("")}\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(text.length + 4, 1);
  return Buffer.concat([head, text]);
}

/** Reads the server's answer with the parser of pg; rejects with what it read, as its client does. */
function query(fields: Record<string, string>): Promise<never> {
  return new Promise((_, reject) => {
    const answer = Readable.from([errorPacket({ S: "ERROR", V: "ERROR", ...fields, R: "_bt_check_unique" })]);
    void readPackets(answer as never, (packet) => reject(packet));
  });
}

async function insertCustomer(email: string): Promise<void> {
  const M = 'duplicate key value violates unique constraint "customers_email_key"';
  await query({ C: "23505", M, D: `Key (email)=(${email}) already exists.`, t: "customers" });
}

async function insertProduct(sku: string): Promise<void> {
  const M = 'duplicate key value violates unique constraint "products_sku_key"';
  await query({ C: "23505", M, D: `Key (sku)=(${sku}) already exists.`, t: "products" });
}

async function insertPrice(amount: string): Promise<void> {
  await query({ C: "22P02", M: `invalid input syntax for type integer: "${amount}"` });
}

async function archive(folder: string, id: string): Promise<void> {
  await writeFile(join(folder, "archive", id, "done.json"), "{}");
}

async function prepare(folder: string): Promise<void> {
  await mkdir(folder);
}

async function listInbox(folder: string, id: number): Promise<string[]> {
  return await readdir(join(folder, "inbox", String(id)));
}

async function clear(folder: string): Promise<void> {
  await rmdir(folder);
}

export const causes: Cause[] = [
  ["import: product row too short", (d) => readProducts(`sku,name,price\n${d.sku},${d.word},1\n${d.sku},${d.word}\n`)],
  ["import: product quote not closed", (d) => readProducts(`sku,name\n${d.sku},"${d.word}\n`)],
  ["import: price row too short", (d) => readPrices(`sku,name,price\n${d.sku},${d.word}\n`)],
  ["import: customer row too long", (d) => readCustomers(`id,name\n${d.id},${d.word},${d.date}\n`)],
  ["import: settings with a wrong indent", (d) => readSettings(`${d.word}: ${d.id}\n  nested: ${d.uuid}\n bad`)],
  ["import: settings with a key twice", (d) => readSettings(`${d.word}: 1\n${d.word}: ${d.id}\n`)],
  ["import: webhook cut off", (d) => readWebhook(`{"id":"${d.uuid}","customer":{"name":"${d.word}"`)],
  ["import: webhook is HTML", (d) => readWebhook(`<html><title>${d.word}</title>`)],
  ["import: config is HTML", (d) => readConfig(`<html><title>${d.word}</title>`)],
  ["import: config is empty", () => readConfig("")],
  ["import: file not gzip", (d) => unpack(d.uuid)],
  ["import: stream not gzip", (d) => unpackStream(d.uuid)],
  ["import: row without columns", (d) => importFile(d)],
  ["import: customer exists", (d) => insertCustomer(d.email)],
  ["import: product exists", (d) => insertProduct(d.sku)],
  ["import: price not a number", (d) => insertPrice(d.amount)],
  ["import: archive folder missing", (d) => archive(d.folder, d.uuid)],
  ["import: folder exists", (d) => prepare(d.folder)],
  ["import: inbox missing", (d) => listInbox(d.folder, d.id)],
  ["import: folder not empty", (d) => clear(d.folder)],
];
