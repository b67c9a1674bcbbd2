// A network between workers and their server that resets connections, falls silent, or forgets them without a word (G8).
import { describe, expect, inject, it, type TestContext } from "vitest";
import { busy, pause } from "../../support/busy-workers.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcp-proxy.ts";

describe.concurrent("a network", { timeout: 240_000 }, () => {
  const between = async (
    onTestFinished: TestContext["onTestFinished"],
  ): Promise<{ readonly url: string; readonly proxy: TcpProxy }> => {
    const target = new URL(inject("postgres18"));
    const proxy = await startTcpProxy(Number(target.port));
    onTestFinished(() => proxy.close());
    target.port = String(proxy.port);
    return { url: target.href, proxy };
  };

  it("that resets connections costs nothing but time", async ({ onTestFinished }) => {
    const { url, proxy } = await between(onTestFinished);
    const work = await busy(url, { onTestFinished, server: inject("postgres18") });
    let reset = 0;
    for (let round = 0; round < 5; round++) {
      reset += proxy.reset();
      await pause(400);
    }
    expect(reset).toBeGreaterThan(3);
    await work.resumes();
    await work.endsWell();
    await work.picksUp();
  });

  it("that falls silent and goes on costs nothing but time", async ({ onTestFinished }) => {
    const { url, proxy } = await between(onTestFinished);
    const work = await busy(url, { onTestFinished, server: inject("postgres18") });
    const silence = proxy.fallSilent();
    await pause(3_000);
    silence.goOn();
    await work.resumes();
    await work.endsWell();
    await work.picksUp();
  });

  it("that falls silent and then resets costs nothing but time", async ({ onTestFinished }) => {
    const { url, proxy } = await between(onTestFinished);
    const work = await busy(url, { onTestFinished, server: inject("postgres18") });
    const silence = proxy.fallSilent();
    await pause(3_000);
    silence.drop();
    await work.resumes();
    await work.endsWell();
    await work.picksUp();
  });

  it("that forgets its connections without a word is noticed, all of them at once", async ({ onTestFinished }) => {
    const { url, proxy } = await between(onTestFinished);
    const work = await busy(url, { onTestFinished, server: inject("postgres18") });
    await work.fillPool();
    proxy.fallSilent().forget();
    // New connections work from here on; the old ones never answer again, and only patience tells: once for all of
    // them, not for one after the other.
    await work.endsWell();
    await work.picksUp();
  });

  it("that is silent for long costs nothing but time on a pool of the user's own", async ({ onTestFinished }) => {
    const { url, proxy } = await between(onTestFinished);
    const work = await busy(url, { onTestFinished, server: inject("postgres18"), ownPool: true });
    await work.fillPool();
    const silence = proxy.fallSilent();
    // Longer than patience with a statement, so that connections are asked for that are never answered.
    await pause(20_000);
    silence.forget();
    await work.resumes();
    await work.endsWell();
  });
});
