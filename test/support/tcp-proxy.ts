// A TCP proxy on loopback that can misbehave as networks do: reset connections, let them fall silent, and swallow the
// answer to a request that got through.
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** A proxy that was started. */
export interface TcpProxy {
  readonly port: number;
  /** Connections that are open now. */
  readonly open: number;
  /** Resets the connections for which `isHit` says so, all unless given, seen by both sides; says how many. */
  reset(isHit?: () => boolean): number;
  /** Falls silent: accepts, and forwards nothing in either direction until the silence is ended. */
  fallSilent(): Silence;
  /**
   * Lets the next request through that `isWanted` recognises, swallows its answer, and resets the connection once the
   * server has answered. False if none came in time, or if it was not answered.
   */
  cutReply(isWanted: (request: Buffer) => boolean, withinMs: number): Promise<boolean>;
  /** Ends all connections and the proxy. */
  close(): Promise<void>;
}

/** A silence of the proxy, and the ways to end it; new connections work again after each of them. */
export interface Silence {
  /** How many connections it has caught until now. */
  readonly caught: number;
  /** What was held back goes on, late. */
  goOn(): void;
  /** What was held back is gone, and the connections are reset. */
  drop(): void;
  /** What was held back is gone; the server sees the connections end, the clients never hear of them again. */
  forget(): void;
}

/** Time for the rest of an answer before its connection is cut. */
const ANSWER_MS = 20;

/** Both ends of a connection. */
interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Its client hears nothing any more. */
  forgotten: boolean;
  /** The answer that is awaited is swallowed, and this hears of it. */
  onAnswer: (() => void) | null;
}

interface Trap {
  readonly isWanted: (request: Buffer) => boolean;
  readonly caught: (link: Link) => void;
}

/** Starts a proxy before a port on loopback. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const links = new Set<Link>();
  let trap: Trap | null = null;
  let silent = false;
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (client) => {
    const link = openLink(client, target, () => links.delete(link));
    links.add(link);
    client.on("data", (bytes) => {
      if (link.forgotten) return;
      const caught = trap?.isWanted(bytes) ? trap.caught : null;
      if (caught) trap = null;
      caught?.(link);
      link.server.write(bytes);
    });
    if (!silent) flow(link);
  });
  const port = await listening(server);
  return {
    port,
    get open() {
      return links.size;
    },
    reset(isHit = () => true) {
      const hit = [...links].filter((link) => !link.forgotten && isHit());
      for (const link of hit) cut(link);
      return hit.length;
    },
    fallSilent() {
      silent = true;
      for (const link of links) if (!link.forgotten) halt(link);
      const held = (): Link[] => [...links].filter((link) => !link.forgotten);
      const end = (what: (link: Link) => void) => (): void => {
        silent = false;
        for (const link of held()) what(link);
      };
      return {
        get caught() {
          return held().length;
        },
        goOn: end(flow),
        drop: end(cut),
        forget: end(forget),
      };
    },
    cutReply: (isWanted, withinMs) =>
      new Promise((resolve) => {
        let hit: Link | null = null;
        const end = (was: boolean): void => {
          clearTimeout(timer);
          if (trap === own) trap = null;
          if (hit) cut(hit);
          resolve(was);
        };
        const timer = setTimeout(() => end(false), withinMs);
        const own: Trap = {
          isWanted,
          caught(link) {
            hit = link;
            link.onAnswer = () => setTimeout(() => end(true), ANSWER_MS);
            link.server.once("close", () => end(false));
          },
        };
        trap = own;
      }),
    async close() {
      server.close();
      for (const link of links) cut(link);
      await once(server, "close");
    },
  };
}

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as { port: number }).port;
}

/** Connects a client with the target; nothing flows yet. */
function openLink(client: Socket, target: number, onGone: () => void): Link {
  const server = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true });
  const link: Link = { client, server, forgotten: false, onAnswer: null };
  server.pause();
  server.on("data", (bytes) => {
    const heard = link.onAnswer;
    if (!heard) return void client.write(bytes);
    link.onAnswer = () => undefined;
    heard();
  });
  // A half that ends is passed on; an error means that the other side must hear of it too.
  client.on("end", () => (link.forgotten ? client.destroy() : server.end()));
  server.on("end", () => !link.forgotten && client.end());
  client.on("error", () => cut(link));
  server.on("error", () => !link.forgotten && cut(link));
  client.on("close", () => {
    server.destroy();
    onGone();
  });
  server.on("close", () => !link.forgotten && client.destroy());
  return link;
}

function flow({ client, server, forgotten }: Link): void {
  client.resume();
  if (!forgotten) server.resume();
}

function halt({ client, server }: Link): void {
  client.pause();
  server.pause();
}

function cut({ client, server }: Link): void {
  client.resetAndDestroy();
  server.resetAndDestroy();
}

function forget(link: Link): void {
  link.forgotten = true;
  link.server.destroy();
  // Read and thrown away, so that the client's own end is noticed.
  link.client.resume();
}
