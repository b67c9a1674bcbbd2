// A scraper and clients of other services: axios, undici, sockets, URLs, time limits, deep chains of calls.

import axios from "axios";
import { connect } from "node:net";
import { request } from "undici";
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cause, Data } from "../data.ts";

class UpstreamError extends Error {
  code: string;
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "UpstreamError";
    this.code = code;
  }
}

function pageUrl(host: string, page: string): URL {
  return new URL(`//${page}`, host);
}

async function fetchPage(base: string, page: string): Promise<string> {
  const { data } = await axios.get<string>(`${base}/500/pages/${page}`);
  return data;
}

async function fetchFeed(base: string, page: string): Promise<string> {
  const { data } = await axios.get<string>(`${base}/500/feeds/${page}`);
  return data;
}

async function fetchPrivate(base: string, page: string): Promise<string> {
  const { data } = await axios.get<string>(`${base}/404/private/${page}`);
  return data;
}

async function fetchSlow(base: string, page: string): Promise<string> {
  const { data } = await axios.get<string>(`${base}/slow/pages/${page}`, { timeout: 30 });
  return data;
}

async function fetchClosed(base: string, page: string): Promise<string> {
  const { data } = await axios.get<string>(`${base}/pages/${page}`);
  return data;
}

async function fetchPrices(base: string, id: number): Promise<unknown> {
  const { body } = await request(`${base}/html/prices/${id}`);
  return await body.json();
}

async function fetchRates(base: string, id: number): Promise<unknown> {
  const { body } = await request(`${base}/rates/${id}`);
  return await body.json();
}

async function fetchStock(base: string, id: number): Promise<unknown> {
  const { body } = await request(`${base}/slow/stock/${id}`, { headersTimeout: 30 });
  return await body.json();
}

function openSocket(address: string): Promise<void> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve());
    socket.on("error", (cause) =>
      reject(new UpstreamError("SOCKET", `Socket to ${hostname}:${port} failed`, { cause })),
    );
  });
}

async function crawl(d: Data, depth: number): Promise<never> {
  await Promise.resolve();
  if (depth > 0) return await crawl(d, depth - 1);
  throw new UpstreamError("CRAWL_LOOP", `Page ${d.uuid} of ${d.host} links to itself since ${d.date}`);
}

async function crawlSite(base: string, site: string): Promise<void> {
  try {
    await fetch(`${base}/${site}`);
  } catch (cause) {
    throw new UpstreamError("SITE_DOWN", `Site ${site} cannot be crawled`, { cause });
  }
}

async function crawlMap(base: string, site: string): Promise<void> {
  try {
    await (await fetch(`${base}/html/${site}`)).json();
  } catch (cause) {
    throw new UpstreamError("SITE_DOWN", `Site ${site} cannot be crawled`, { cause });
  }
}

function nest(depth: number): number {
  return nest(depth + 1) + 1;
}

const linksOf = (page: { links?: string[] }): number => (page.links as string[]).length;
const imagesOf = (page: { images?: string[] }): number => (page.images as string[]).length;

function visit(pages: unknown): number {
  let count = 0;
  for (const page of pages as string[]) count += page.length;
  return count;
}

function checksum(algorithm: string, text: string): string {
  return createHash(algorithm).update(text).digest("hex");
}

function decode(path: string): string {
  return decodeURIComponent(path);
}

function matcher(pattern: string): RegExp {
  return new RegExp(pattern);
}

function freeze(page: { title: string }): void {
  Object.freeze(page).title = "changed";
}

async function withLimit<T>(work: Promise<T>, label: string): Promise<T> {
  const limit = sleep(10).then(() => {
    throw new Error(`${label} took longer than 10 ms`);
  });
  return await Promise.race([work, limit]);
}

async function scrapeDetails(d: Data): Promise<void> {
  await withLimit(sleep(60), `Details of ${d.uuid}`);
}

function rejectText(d: Data): never {
  throw `Page ${d.uuid} is gone`;
}

function bigPage(d: Data): bigint {
  return BigInt(d.amount);
}

export const causes: Cause[] = [
  ["scraper: address without host", (d) => pageUrl(d.host.replaceAll(".", "-"), d.word)],
  ["scraper: page answers 500", (d) => fetchPage(d.base, d.uuid)],
  ["scraper: feed answers 500", (d) => fetchFeed(d.base, d.uuid)],
  ["scraper: private page answers 404", (d) => fetchPrivate(d.base, d.uuid)],
  ["scraper: page too slow", (d) => fetchSlow(d.base, d.uuid)],
  ["scraper: page refuses connections", (d) => fetchClosed(d.closed, d.uuid)],
  ["scraper: prices are not JSON", (d) => fetchPrices(d.base, d.id)],
  ["scraper: rates refuse connections", (d) => fetchRates(d.closed, d.id)],
  ["scraper: stock too slow", (d) => fetchStock(d.base, d.id)],
  ["scraper: socket refused", (d) => openSocket(d.closed)],
  ["scraper: page links to itself", (d) => crawl(d, 1 + (d.id % 5))],
  ["scraper: site refuses connections", (d) => crawlSite(d.closed, d.word)],
  ["scraper: site map is not JSON", (d) => crawlMap(d.base, d.word)],
  ["scraper: endless nesting", () => nest(0)],
  ["scraper: page without links", () => linksOf({})],
  ["scraper: page without images", () => imagesOf({})],
  ["scraper: pages not a list", (d) => visit({ [d.word]: d.id })],
  ["scraper: checksum unknown", (d) => checksum(`${d.word}${d.other}`, d.uuid)],
  ["scraper: path wrongly encoded", (d) => decode(`/${d.word}/%E0%A4%A`)],
  ["scraper: pattern not closed", (d) => matcher(`(${d.word}`)],
  ["scraper: frozen page changed", (d) => freeze({ title: d.name })],
  ["scraper: details over the limit", (d) => scrapeDetails(d)],
  ["scraper: text thrown", (d) => rejectText(d)],
  ["scraper: amount not whole", (d) => bigPage(d)],
];
