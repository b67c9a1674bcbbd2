// Random secrets, and their comparison by digest, which takes as long whatever the guess is.
import { hash, randomBytes, timingSafeEqual } from "node:crypto";

/** 32 random bytes as text for URLs. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** The digest under which a secret is stored. */
export function digestOf(secret: string): string {
  return hash("sha256", secret);
}

/** True where two digests are one. */
export function isSameDigest(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}
