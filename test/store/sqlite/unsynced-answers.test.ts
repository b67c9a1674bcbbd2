// Answers held back until a sync: with syncs that end when the test says so.
import { describe, expect, it } from "vitest";
import { type Disk, UnsyncedAnswers } from "../../../src/store/sqlite/unsynced-answers.ts";

/** A disk whose syncs are in the test's hands, a timer likewise, and everything in the order in which it happened. */
function setup() {
  const told: string[] = [];
  const underWay: ((error: Error | null) => void)[] = [];
  const timers = new Set<() => void>();
  const asked: (() => void)[] = [];
  let broken: Error | null = null;
  const disk: Disk = {
    begin(done) {
      told.push("begin");
      underWay.push(done);
    },
    now() {
      told.push("now");
      if (broken) throw broken;
    },
    reached: (called) => void asked.push(called),
  };
  const after = (_ms: number, callback: () => void) => {
    timers.add(callback);
    return () => void timers.delete(callback);
  };
  let now = 0;
  const held = new UnsyncedAnswers<string>(disk, { after, monotonic: () => now }, (answers, error) => {
    told.push(`${error ? "failed" : "sent"} ${answers.join(" ")}`);
  });
  return {
    held,
    told,
    /** Ends the first sync under way. */
    end(error: Error | null = null) {
      told.push("end");
      underWay.shift()?.(error);
    },
    endLast() {
      told.push("end");
      underWay.pop()?.(null);
    },
    /** Lets the syncs under way be late, because they have no thread or although they have one. */
    late({ hasThread = false } = {}) {
      const pass = () => {
        const due = [...timers];
        timers.clear();
        for (const callback of due) callback();
      };
      pass();
      for (const called of asked.splice(0)) if (hasThread) called();
      pass();
    },
    break(error: Error) {
      broken = error;
    },
    pass(ms: number) {
      now += ms;
    },
    timers,
  };
}

const EIO = new Error("EIO: i/o error, fdatasync");

describe("an answer", () => {
  it("is sent when a sync that began after its commit has ended, and not before", () => {
    const { held, told, end } = setup();
    held.hold(["a", "b"], false);
    expect(told).toEqual(["begin"]);
    end();
    expect(told).toEqual(["begin", "end", "sent a b"]);
  });

  it("keeps its holder busy until it is sent", () => {
    const { held, end } = setup();
    expect(held.isBusy).toBe(false);
    held.hold(["a"], false);
    expect(held.isBusy).toBe(true);
    end();
    expect(held.isBusy).toBe(false);
  });

  it("about a commit made during a sync is not sent with it, but with one that begins later", () => {
    const { held, told, end } = setup();
    held.hold(["a"], false);
    held.hold(["b"], false);
    expect(told).toEqual(["begin", "begin"]);
    end();
    expect(told.slice(2)).toEqual(["end", "sent a"]);
    end();
    expect(told.slice(4)).toEqual(["end", "sent b"]);
  });

  it("waits while two syncs are under way; the next begins as soon as one has ended, for all that wait", () => {
    const { held, told, end } = setup();
    for (const name of ["a", "b", "c", "d"]) held.hold([name], false);
    expect(told).toEqual(["begin", "begin"]);
    end();
    expect(told.slice(2)).toEqual(["end", "begin", "sent a"]);
    end();
    expect(told.slice(5)).toEqual(["end", "sent b"]);
    end();
    expect(told.slice(7)).toEqual(["end", "sent c d"]);
  });

  it("is sent with its own sync where that ends before an earlier one", () => {
    const { held, told, endLast, end } = setup();
    held.hold(["a"], false);
    held.hold(["b"], false);
    endLast();
    expect(told.slice(2)).toEqual(["end", "sent b"]);
    end();
    expect(told.slice(4)).toEqual(["end", "sent a"]);
  });

  it("that comes when nothing is under way begins a sync of its own", () => {
    const { held, told, end, timers } = setup();
    held.hold(["a"], false);
    end();
    held.hold(["b"], false);
    end();
    expect(told).toEqual(["begin", "end", "sent a", "begin", "end", "sent b"]);
    expect(timers.size).toBe(0);
  });
});

describe("a lone answer", () => {
  it("of a caller who is back as soon as it is answered is synced here and sent at once", () => {
    const { held, told, end, pass } = setup();
    held.hold(["a"], true);
    end();
    for (const name of ["b", "c"]) {
      pass(0.2);
      held.hold([name], true);
    }
    expect(told).toEqual(["begin", "end", "sent a", "now", "sent b", "now", "sent c"]);
  });

  it("goes beside where that was longer ago, so that whoever comes meanwhile does not wait for the disk", () => {
    const { held, told, end, pass } = setup();
    for (const name of ["a", "b"]) {
      held.hold([name], true);
      end();
      pass(20);
    }
    expect(told).toEqual(["begin", "end", "sent a", "begin", "end", "sent b"]);
  });

  it("goes beside like the others while a sync is under way", () => {
    const { held, told } = setup();
    held.hold(["a"], false);
    held.hold(["b"], true);
    expect(told).toEqual(["begin", "begin"]);
  });
});

describe("a sync that fails", () => {
  it("fails every answer that waits, those of later commits too, and the next commit syncs anew", () => {
    const { held, told, end } = setup();
    for (const name of ["a", "b", "c"]) held.hold([name], false);
    end(EIO);
    expect(told).toEqual(["begin", "begin", "end", "failed a b c"]);
    end();
    expect(told.slice(4)).toEqual(["end"]);
    held.hold(["d"], false);
    end();
    expect(told.slice(5)).toEqual(["begin", "end", "sent d"]);
  });
});

describe("a sync that is late", () => {
  it("is done here, and so are those after it until it comes back", () => {
    const { held, told, end, late } = setup();
    held.hold(["a"], false);
    late();
    expect(told).toEqual(["begin", "now", "sent a"]);
    held.hold(["b"], false);
    expect(told.slice(3)).toEqual(["now", "sent b"]);
    end();
    held.hold(["c"], false);
    expect(told.slice(5)).toEqual(["end", "begin"]);
    end();
    expect(told.slice(7)).toEqual(["end", "sent c"]);
  });

  it("is waited for where it has its thread and the disk is slow, and what comes meanwhile goes beside", () => {
    const { held, told, end, late, timers } = setup();
    held.hold(["a"], false);
    late({ hasThread: true });
    held.hold(["b"], true);
    expect(told).toEqual(["begin", "begin"]);
    end();
    end();
    expect(told.slice(2)).toEqual(["end", "sent a", "end", "sent b"]);
    expect(timers.size).toBe(0);
  });

  it("fails what waits if it fails here", () => {
    const { held, told, late, break: breakDisk } = setup();
    held.hold(["a"], false);
    breakDisk(EIO);
    late();
    expect(told).toEqual(["begin", "now", "failed a"]);
  });

  it("tells of its failure even if nothing waits any more", () => {
    const { held, told, late, end } = setup();
    held.hold(["a"], false);
    late();
    end(EIO);
    expect(told).toEqual(["begin", "now", "sent a", "end", "failed "]);
  });
});

describe("finishing", () => {
  it("syncs here and sends everything, and without anything to send does nothing", () => {
    const { held, told, end } = setup();
    held.finish();
    held.hold(["a"], false);
    held.hold(["b"], false);
    held.finish();
    held.finish();
    expect(told).toEqual(["begin", "begin", "now", "sent a b"]);
    end();
    end();
    expect(told.slice(4)).toEqual(["end", "end"]);
  });
});
