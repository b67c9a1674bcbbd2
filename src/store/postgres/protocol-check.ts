// Tells by the first byte that a server sends whether it is Postgres at all. The driver would wait for the rest of a
// supposed message and report that the server does not answer.
import { Socket } from "node:net";
import type pg from "pg";

/** The code of the error for a connection to another kind of server. */
export const NOT_POSTGRES = "NOT_POSTGRES";

/** How an answer begins: a login, its refusal, or another version of the protocol. */
const PLAIN: ReadonlySet<number> = new Set(Buffer.from("REv"));
/** How it begins where encryption was requested: yes, no, a refusal, or the encryption itself. */
const TO_TLS: ReadonlySet<number> = new Set(Buffer.from("SNE\u0016"));

/** A socket for the driver that fails at the first byte that Postgres would not send. */
export function listenFirst({ ssl }: pg.ClientConfig): Socket {
  const socket = new Socket();
  socket.once("data", (bytes: Buffer) => {
    if ((ssl ? TO_TLS : PLAIN).has(bytes[0] as number)) return;
    const said = JSON.stringify(bytes.toString("latin1", 0, 20).replace(/[^ -~]/g, "."));
    // At once, because the driver would report another error for these bytes.
    socket.emit("error", Object.assign(new Error(`it said ${said}`), { code: NOT_POSTGRES }));
    socket.destroy();
  });
  return socket;
}
