// AMQP 0-9-1 (amqplib): reply codes in the message that closes a channel or a connection. They look like HTTP statuses
// and mean other things: 405 is a locked queue, 503 an invalid command.

import type { FailureClass } from "../job.ts";
import { type Family, table } from "./clue.ts";

const REPLIES = table({
  transient: "313 320 405 504 506 541",
  network: "501",
  validation: "311",
  permanent: "312 402 404 406 502 503 505 530 540",
  authentication: "403",
});
const CLOSED = /(?:closed|terminated)(?: by server)?: (\d{3}) \([A-Z_-]{3,40}\)/;
const PHRASES: readonly (readonly [string, FailureClass])[] = [
  ["Channel ended, no reply will be forthcoming", "network"],
  ["Socket closed abruptly during opening handshake", "network"],
  ["Heartbeat timeout", "network"],
  ["Unexpected close", "network"],
  ["message nacked", "transient"],
];

/** AMQP. */
export const amqp: Family = ({ type, message }) => {
  const reply = CLOSED.exec(message)?.[1];
  if (reply === "406" && message.includes("timed out")) return "timeout";
  if (reply !== undefined) return REPLIES.get(reply);
  if (type === "IllegalOperationError") return "transient";
  return PHRASES.find(([phrase]) => message.startsWith(phrase))?.[1];
};
