// A process that only drives redrive runs, as a follower does, until it is killed. Its arguments are the built library, the
// address of the store and the run.
const [library, store, id] = process.argv.slice(2);
const { createRedrive } = await import(library);
const redrive = await createRedrive({ store, log: "silent" });
process.send("begun");
const run = await redrive.redrives.follow(id);
process.send({ state: run.state, sent: run.counts.sent });
await redrive.close();
process.disconnect();
