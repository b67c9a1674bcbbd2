// Certificates for servers of tests, made by openssl where it is installed.
import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { owner } from "./postgres-server.ts";

/** False where no certificate can be made. */
export const HAS_OPENSSL = spawnSync("openssl", ["version"]).status === 0;

/** Files that servers and their clients are started with. */
export interface Certificates {
  /** Who signed both certificates. */
  readonly authority: string;
  /** For `localhost`, for two days. */
  readonly valid: string;
  /** The same, but it ended yesterday. */
  readonly expired: string;
  readonly key: string;
  remove(): void;
}

/** Makes certificates for `localhost`, readable for a server. */
export function makeCertificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), "redrive-tls-"));
  const openssl = (...args: readonly string[]): void =>
    void execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const fresh = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  openssl("req", "-x509", ...fresh, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=Redrive test", "-days", "2");
  const host = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  openssl("req", ...fresh, "-keyout", "host.key", "-out", "host.csr", ...host);
  const signed = [
    "-in",
    "host.csr",
    "-CA",
    "ca.crt",
    "-CAkey",
    "ca.key",
    "-CAcreateserial",
    "-copy_extensions",
    "copy",
  ];
  openssl("x509", "-req", ...signed, "-days", "2", "-out", "valid.crt");
  openssl("x509", "-req", ...signed, "-days", "-1", "-out", "expired.crt");
  const [authority, valid, expired, key] = ["ca.crt", "valid.crt", "expired.crt", "host.key"].map((name) =>
    join(folder, name),
  ) as [string, string, string, string];
  const as = owner();
  if (as) for (const path of [folder, authority, valid, expired, key]) chownSync(path, as.uid, as.gid);
  return { authority, valid, expired, key, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
