// A process that plans a redrive of all letters of a type, starts it and drives it to its end. Its arguments are the built
// library, the address of the store, the type and the rate; it tells its parent how long the plan and the start took, and its memory at
// a tenth, a half and the end of the sends.
const [library, store, type, rate] = process.argv.slice(2);
const { createRedrive } = await import(library);
const redrive = await createRedrive({ store, log: "silent" });
const tell = (message) => new Promise((resolve) => process.send(message, resolve));

function memory() {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heapUsed };
}

async function timed(work) {
  const from = performance.now();
  const answer = await work();
  return { answer, ms: performance.now() - from };
}

const planned = await timed(() => redrive.redrives.plan({ type }));
await tell({ planned: planned.answer.toSend, ms: planned.ms, ...memory() });
const started = await timed(() => redrive.redrives.start(planned.answer.id, { canary: "none", rate: Number(rate) }));
await tell({ started: started.answer.id, ms: started.ms, ...memory() });
const shares = [0, 0.1, 0.5, 1];
const onChange = ({ counts: { sent }, toSend }) => {
  while (shares.length > 0 && sent >= shares[0] * toSend) void tell({ share: shares.shift(), sent, ...memory() });
};
const { state, counts } = await redrive.redrives.follow(started.answer.id, { onChange });
await redrive.close();
await tell({ state, counts });
process.disconnect();
