// Invoices: schemas, numbers, taxes; errors that wrap other errors.

import { Ajv } from "ajv";
import { z } from "zod";
import type { Cause } from "../data.ts";

const Invoice = z.object({
  number: z.string().min(3),
  total: z.number().positive(),
  customer: z.object({ email: z.email(), vat: z.string().optional() }),
});

class InvoiceError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}
class TaxError extends InvoiceError {}

const ajv = new Ajv();
const validateExport = ajv.compile({
  type: "object",
  required: ["number", "lines"],
  properties: { number: { type: "string" }, lines: { type: "array", minItems: 1 } },
});

function createInvoice(input: unknown) {
  return Invoice.parse(input);
}

async function importInvoice(input: unknown) {
  await Promise.resolve();
  return await Invoice.parseAsync(input);
}

function exportInvoice(id: number, document: unknown): void {
  if (validateExport(document)) return;
  throw new InvoiceError(`Invoice ${id} cannot be exported: ${ajv.errorsText(validateExport.errors)}`);
}

function compileTemplate(kind: string): void {
  ajv.compile({ type: kind });
}

function parseTaxRate(text: string): number {
  const rate = Number(text);
  if (Number.isNaN(rate)) throw new TaxError(`"${text}" is not a tax rate`);
  if (rate > 100) throw new TaxError(`Tax rate ${rate} is above 100`);
  return rate;
}

function formatTotal(total: number, digits: number): string {
  return total.toFixed(digits);
}

function formatDueDate(text: string): string {
  return new Date(`${text} o'clock`).toISOString();
}

function currencyOf(code: string): string {
  return new Intl.NumberFormat("en", { style: "currency", currency: code }).format(1);
}

async function loadOrder(id: string): Promise<never> {
  await Promise.resolve();
  throw new Error(`Order ${id} not found`);
}

async function invoiceFor(orderId: string): Promise<never> {
  return await loadOrder(orderId);
}

function readLedger(text: string): unknown {
  return JSON.parse(text);
}

async function postInvoice(id: number, ledger: string): Promise<void> {
  try {
    await Promise.resolve(readLedger(ledger));
  } catch (cause) {
    throw new InvoiceError(`Posting invoice ${id} failed`, { cause });
  }
}

async function postCredit(id: number, amount: string): Promise<void> {
  try {
    parseTaxRate(amount);
  } catch (cause) {
    throw new InvoiceError(`Posting invoice ${id} failed`, { cause });
  }
}

const pad = (text: string, times: number): string => text.repeat(times);

export const causes: Cause[] = [
  ["invoices: created without number", (d) => createInvoice({ total: d.id, customer: { email: d.email } })],
  [
    "invoices: created with wrong mail address",
    (d) => createInvoice({ number: d.sku, total: d.id, customer: { email: d.name } }),
  ],
  ["invoices: imported without number", (d) => importInvoice({ total: d.id, customer: { email: d.email } })],
  [
    "invoices: imported with negative total",
    (d) => importInvoice({ number: d.sku, total: -d.id, customer: { email: d.email } }),
  ],
  ["invoices: export without lines", (d) => exportInvoice(d.id, { number: d.sku })],
  ["invoices: export with empty lines", (d) => exportInvoice(d.id, { number: d.sku, lines: [] })],
  ["invoices: template of unknown type", (d) => compileTemplate(d.word)],
  ["invoices: tax rate not a number", (d) => parseTaxRate(`${d.other}%`)],
  ["invoices: tax rate too high", (d) => parseTaxRate(String(d.other + 101))],
  ["invoices: too many digits", (d) => formatTotal(d.id, 101 + (d.other % 50))],
  ["invoices: due date not a date", (d) => formatDueDate(d.word)],
  ["invoices: currency code wrong", (d) => currencyOf(`${d.word}1`)],
  ["invoices: order of invoice not found", (d) => invoiceFor(d.uuid)],
  ["invoices: ledger not JSON", (d) => postInvoice(d.id, `<ledger id="${d.uuid}">`)],
  ["invoices: credit with wrong tax rate", (d) => postCredit(d.id, d.name)],
  ["invoices: padding below zero", (d) => pad(d.word, -1 - (d.other % 9))],
];
