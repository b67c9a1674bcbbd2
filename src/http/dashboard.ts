// Serves the files of the dashboard: read once, hashed names kept by browsers for a year, and a policy under which no text
// of a job can become code.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { PlainAnswer } from "./answers.ts";

/** The files of the dashboard. */
export interface Dashboard {
  answer(path: string): PlainAnswer;
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".map": "application/json",
};

const MISSING =
  "The dashboard is not built: its files are not in this package. Build it with npm run build. The API is under /api/v1.\n";

/** Opens the folder; default the one that is built beside the library. */
export function openDashboard(folder: string | null): Dashboard {
  const from = folder ?? fileURLToPath(new URL("../dashboard", import.meta.url));
  const files = new Map<string, { readonly bytes: Uint8Array; readonly type: string }>();
  if (existsSync(join(from, "index.html")))
    for (const name of readdirSync(from)) {
      const type = TYPES[extname(name)];
      if (type !== undefined) files.set(`/${name}`, { bytes: readFileSync(join(from, name)), type });
    }
  return {
    answer(path) {
      const headers: Record<string, string> = { "content-security-policy": POLICY, "cache-control": "no-store" };
      const wanted = path === "/" || path === "" ? "/index.html" : path;
      const file = files.get(wanted);
      if (file === undefined) {
        const text = files.size === 0 ? MISSING : "There is no such file.\n";
        return { status: 404, headers: { ...headers, "content-type": "text/plain" }, body: text };
      }
      const isHashed = /-[\w]{8,}\.\w+$/.test(wanted);
      headers["cache-control"] = isHashed ? "public, max-age=31536000, immutable" : "no-cache";
      headers["content-type"] = file.type;
      return { status: 200, headers, body: file.bytes };
    },
  };
}
