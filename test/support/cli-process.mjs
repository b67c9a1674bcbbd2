// The command line in a process of its own, from the library as it is built for tests.
const { main } = await import(`${process.env.REDRIVE_BUILT}cli/process.js`);
await main();
