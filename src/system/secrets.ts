// Random secrets, and their comparison by digest, which takes as long whatever the guess is.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** 32 random bytes as text for URLs. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** The digest under which a secret is stored. */
export function digestOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** True where the secret has this digest. */
export function hasDigest(secret: string, digest: string): boolean {
  const [a, b] = [Buffer.from(digestOf(secret)), Buffer.from(digest)];
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}
