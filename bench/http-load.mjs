// Callers of an HTTP server with as little work of their own as can be: they share a core with the server that is measured.
import { connect } from "node:net";

const END = Buffer.from("\r\n\r\n");

/** Sends requests over one connection, each after the answer to the one before. */
function caller(port, next) {
  return new Promise((resolve, reject) => {
    let rest = Buffer.alloc(0);
    const socket = connect(port, "127.0.0.1", send);
    socket.setNoDelay(true);
    function send() {
      const request = next();
      if (request !== null) return void socket.write(request);
      socket.end();
      resolve();
    }
    socket.on("error", reject);
    socket.on("data", (data) => {
      rest = rest.length === 0 ? data : Buffer.concat([rest, data]);
      for (;;) {
        const head = rest.indexOf(END);
        if (head < 0) return;
        const text = rest.toString("latin1", 0, head).toLowerCase();
        const status = Number(text.slice(9, 12));
        if (status >= 300) return reject(new Error(rest.toString().slice(0, 500)));
        const end = answerEnd(rest, head + 4, text);
        if (end < 0 || rest.length < end) return;
        rest = rest.subarray(end);
        send();
      }
    });
  });
}

/** Where the answer ends; -1 where that is not known yet. */
function answerEnd(rest, from, head) {
  const length = /content-length: (\d+)/.exec(head)?.[1];
  if (length !== undefined) return from + Number(length);
  const end = rest.indexOf("0\r\n\r\n", from, "latin1");
  return end < 0 ? -1 : end + 5;
}

/** One POST as bytes. */
export function post(path, token, body) {
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.from(head + body);
}

/** Sends so many requests over so many connections; answers the milliseconds it took. */
export async function load(port, { callers, count, request }) {
  let sent = 0;
  const next = () => (sent++ < count ? request : null);
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, () => caller(port, next)));
  return performance.now() - began;
}

/** Uploads lines in one request, reading the answers meanwhile; answers the milliseconds it took. */
export function upload(port, { path, token, count, line }) {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n`;
    let at = 0;
    let lines = 0;
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(head);
      more();
    });
    function more() {
      while (at < count) {
        let text = "";
        for (const end = Math.min(count, at + 500); at < end; at++) text += `${line(at)}\n`;
        if (!socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)) return;
      }
      if (at === count) socket.write("0\r\n\r\n");
      at = count + 1;
    }
    socket.on("drain", () => at <= count && more());
    socket.on("error", reject);
    socket.on("data", (data) => {
      for (const byte of data) if (byte === 123) lines += 1;
    });
    socket.on("end", () => {
      if (lines < count) return reject(new Error(`${lines} answers for ${count} lines.`));
      resolve(performance.now() - began);
    });
  });
}
