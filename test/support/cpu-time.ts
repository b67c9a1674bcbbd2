// What work costs in processor time of this process, which others on the machine hardly change.

/** Does the work and gives the milliseconds of processor time it took. */
export async function cpuMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
