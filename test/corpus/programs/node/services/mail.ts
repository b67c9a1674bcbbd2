// Mail: templates from files, a provider behind HTTP, callbacks and events.

import { EventEmitter } from "node:events";
import { readFile as readFileLater, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Cause, Data } from "../data.ts";

class MailRejected extends Error {
  status: number;
  constructor(status: number, to: string) {
    super(`Mail to <${to}> rejected with ${status}`);
    this.status = status;
  }
}

async function readTemplate(folder: string, name: string): Promise<string> {
  return await readFile(join(folder, "templates", `${name}.html`), "utf8");
}

function readFooter(folder: string, language: string): string {
  return readFileSync(join(folder, "templates", language, "footer.txt"), "utf8");
}

function readSignature(folder: string): Promise<string> {
  return promisify(readFileLater)(folder, "utf8") as Promise<string>;
}

function render(template: string, values: Record<string, string>): string {
  return template.replace(/\{(\w+)\}/g, (_, key: string) => {
    const value = values[key];
    if (value === undefined) throw new ReferenceError(`Template of ${values["to"]} uses {${key}}, which has no value`);
    return value;
  });
}

async function send(base: string, to: string): Promise<void> {
  const answer = await fetch(`${base}/500/messages?to=${encodeURIComponent(to)}`, { method: "POST", body: to });
  if (!answer.ok) throw new MailRejected(answer.status, to);
}

async function sendBulk(base: string, to: string): Promise<void> {
  const answer = await fetch(`${base}/429/bulk`, { method: "POST", body: to });
  if (answer.status === 429) throw Object.assign(new Error(`Rate limit of ${to} reached`), { status: 429 });
}

class Mailer {
  base: string;
  constructor(base: string) {
    this.base = base;
  }
  async connect(path: string): Promise<void> {
    await fetch(`${this.base}/${path}`);
  }
  async status(id: string): Promise<unknown> {
    const answer = await fetch(`${this.base}/html/status/${id}`);
    return await answer.json();
  }
  async deliver(id: string): Promise<unknown> {
    const answer = await fetch(`${this.base}/reset/deliver/${id}`);
    return await answer.text();
  }
  async deliverInTime(id: string): Promise<unknown> {
    return await fetch(`${this.base}/slow/deliver/${id}`, { signal: AbortSignal.timeout(40) });
  }
}

function onBounce(d: Data): Promise<void> {
  return new Promise((_, reject) => {
    const bounces = new EventEmitter();
    bounces.on("bounce", (address: string) => {
      reject(new Error(`Address ${address} bounced: 550 5.1.1 mailbox unavailable (${d.uuid})`));
    });
    setImmediate(() => bounces.emit("bounce", d.email));
  });
}

function onComplaint(d: Data): void {
  const complaints = new EventEmitter();
  complaints.emit("error", new Error(`Complaint of ${d.email} on ${d.date}`));
}

async function sendAll(ids: string[], base: string): Promise<unknown> {
  return await Promise.any(ids.map((id) => send(base, id)));
}

async function sendDigest(d: Data): Promise<void> {
  const body = await render("Dear {name}, {offer}", { name: d.name, to: d.email });
  await send(d.base, body);
}

export const causes: Cause[] = [
  ["mail: template missing", (d) => readTemplate(d.folder, `${d.word}-${d.other}`)],
  ["mail: footer missing", (d) => readFooter(d.folder, d.word)],
  ["mail: signature is a folder", (d) => readSignature(d.folder)],
  ["mail: placeholder without value", (d) => sendDigest(d)],
  ["mail: provider answers 500", (d) => send(d.base, d.email)],
  ["mail: provider limits the rate", (d) => sendBulk(d.base, d.email)],
  ["mail: provider refuses connections", (d) => new Mailer(d.closed).connect(d.uuid)],
  ["mail: status is not JSON", (d) => new Mailer(d.base).status(d.uuid)],
  ["mail: provider resets the connection", (d) => new Mailer(d.base).deliver(d.uuid)],
  ["mail: provider too slow", (d) => new Mailer(d.base).deliverInTime(d.uuid)],
  ["mail: address bounced", (d) => onBounce(d)],
  ["mail: complaint not listened to", (d) => onComplaint(d)],
  ["mail: all addresses rejected", (d) => sendAll([d.email, d.word], d.base)],
];
