// JSON-RPC 2.0, also of language servers and the Model Context Protocol: negative numbers that no other protocol has.

import type { FailureClass } from "../job.ts";
import { type Family, readNumber } from "./clue.ts";

const CODES: ReadonlyMap<number, FailureClass> = new Map([
  [-32_700, "validation"],
  [-32_600, "validation"],
  [-32_602, "validation"],
  [-32_601, "permanent"],
  [-32_603, "transient"],
  [-32_005, "rate_limited"],
]);

/** JSON-RPC. */
export const jsonrpc: Family = ({ error }) => CODES.get(readNumber(error, "code") ?? 0);
