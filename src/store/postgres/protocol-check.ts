// The first byte that a server sends tells whether it is Postgres at all. The driver would wait for the rest of what it
// takes for a message, and say that nobody answers.
import { Socket } from "node:net";
import type pg from "pg";

/** The code of the error that a connection to something else ends with. */
export const NOT_POSTGRES = "NOT_POSTGRES";

/** How an answer begins: a login, its refusal, or another version of the protocol. */
const PLAIN: ReadonlySet<number> = new Set(Buffer.from("REv"));
/** How it begins where encryption was asked for: yes, no, a refusal, or the encryption itself. */
const TO_TLS: ReadonlySet<number> = new Set(Buffer.from("SNE\u0016"));

/** A socket for the driver that ends with the first byte that Postgres would not send. */
export function listenFirst({ ssl }: pg.ClientConfig): Socket {
  const socket = new Socket();
  socket.once("data", (bytes: Buffer) => {
    if ((ssl ? TO_TLS : PLAIN).has(bytes[0] as number)) return;
    const said = JSON.stringify(bytes.toString("latin1", 0, 20).replace(/[^ -~]/g, "."));
    // At once, because the driver would find another reason in these bytes.
    socket.emit("error", Object.assign(new Error(`it said ${said}`), { code: NOT_POSTGRES }));
    socket.destroy();
  });
  return socket;
}
