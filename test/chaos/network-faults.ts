// The faults that only a server has: it is killed and started again, it ends connections, and the network before it
// resets them, falls silent, or loses the answer to a commit. One at a time, while processes are killed and halted.
import type { Dice } from "../simulation/dice.ts";
import { ownScribe } from "./file-scribe.ts";
import type { ServerScene } from "./scene.ts";
import type { Fault, Wanted } from "./storm.ts";
import { sleep } from "./told.ts";

/** The kinds of faults of the proxy. */
export const PROXY_FAULTS = ["resets", "silences", "lost answers"] as const;

const PLACE = "server";
/** What a request contains that ends in a commit which matters: whole transactions, and statements that are one. */
const COMMITS = ["commit\0", "settle_complete", "enqueue", "claim"];
const CUT_WITHIN_MS = 5_000;

/** The faults of a server and its network, as many as wanted. */
export function networkFaults({ serverKills, proxyFaults }: Wanted, server: ServerScene, dice: Dice): Fault[] {
  const { proxy } = server;
  const some = (): (() => boolean) => {
    const share = dice.pick([0.1, 0.5, 1]);
    return () => dice.chance(share);
  };
  const happenings: readonly [string, number, () => Promise<boolean>][] = [
    ["server kills", serverKills, () => killServer(server, dice)],
    ["ended backends", Math.ceil(proxyFaults / 4), async () => (await server.terminate(some())) > 0],
    ["resets", shareOf(proxyFaults, 0), async () => proxy.reset(some()) > 0],
    ["silences", shareOf(proxyFaults, 1), () => fallSilent(server, dice)],
    ["lost answers", shareOf(proxyFaults, 2), () => loseAnswer(server, dice)],
  ];
  return happenings.map(([kind, wanted, happen]) => ({ kind, wanted, place: PLACE, happen }));
}

/** An even part of the faults of the proxy for each of their kinds. */
function shareOf(all: number, at: number): number {
  return Math.ceil((all - at) / PROXY_FAULTS.length);
}

async function killServer(server: ServerScene, dice: Dice): Promise<boolean> {
  mark("server is killed");
  await server.kill();
  mark("server is gone");
  await sleep(dice.pick([0, dice.between(0, 1_000), dice.between(1_000, 4_000)]));
  await server.start();
  mark("server is back");
  return true;
}

async function fallSilent({ proxy }: ServerScene, dice: Dice): Promise<boolean> {
  mark("network falls silent");
  const silence = proxy.fallSilent();
  await sleep(dice.pick([dice.between(200, 1_500), dice.between(1_500, 6_000)]));
  const end = dice.pick(["goOn", "drop", "forget"] as const);
  mark(`network: ${end}`);
  const { caught } = silence;
  silence[end]();
  return caught > 0;
}

async function loseAnswer({ proxy }: ServerScene, dice: Dice): Promise<boolean> {
  const wanted = dice.pick(COMMITS);
  const cut = await proxy.cutReply((request) => request.includes(wanted), CUT_WITHIN_MS);
  if (cut) mark(`network lost the answer to ${wanted.replace("\0", "")}`);
  return cut;
}

function mark(answer: string): void {
  ownScribe().write("conductor", "mark", "ok", { answer });
}
