// The book of alerts: when an alert is raised, told again, cleared and forgotten, and what a mute changes of it.
import { describe, expect, it } from "vitest";
import {
  type AlertBook,
  bookAfter,
  bookFrom,
  EMPTY_BOOK,
  type AlertMute,
  mutesFrom,
} from "../../../src/core/alerting/book.ts";
import { messageForm, messageLine, messageOf, slackForm, testMessage } from "../../../src/core/alerting/message.ts";
import { type Condition, resolveRules } from "../../../src/core/alerting/rules.ts";
import {
  mayTell,
  newSink,
  sinkFrom,
  untoldOf,
  withFailure,
  withIntent,
  withMark,
} from "../../../src/core/alerting/telling.ts";

const START = 1_800_000_000_000;
const MINUTE = 60_000;
const RULES = resolveRules({ errorRate: { for: "5m", repeat: "1h" } });
const rate: Condition = {
  rule: "errorRate",
  subject: null,
  since: null,
  text: "50 % fail",
  help: "redrive dlq causes",
  value: 0.5,
  limit: 0.1,
};

/** A fleet that looks when told; answers what there is to tell after each look. */
function fleet(rules = RULES) {
  let book: AlertBook = EMPTY_BOOK;
  let told = 0;
  return {
    book: () => book,
    look(minute: number, conditions: readonly Condition[], mutes: readonly AlertMute[] = []): string[] {
      book = bookFrom(JSON.stringify(bookAfter(book, { conditions, rules, mutes, now: START + minute * MINUTE })));
      const news = book.alerts.filter(({ message }) => (message?.n ?? 0) > told);
      told = book.n;
      return news.map(({ message }) => message?.kind ?? "");
    },
  };
}

describe("an alert", () => {
  it("is raised after `for`, told again after `repeat`, and cleared", () => {
    const { look, book } = fleet();
    expect([look(0, [rate]), look(4, [rate]), look(5, [rate]), look(6, [rate])]).toEqual([[], [], ["raised"], []]);
    expect(book().alerts).toMatchObject([
      { state: "raised", since: START, raisedAt: START + 5 * MINUTE, clearedAt: null },
    ]);
    expect([look(64, [rate]), look(65, [rate]), look(66, [rate])]).toEqual([[], ["repeated"], []]);
    expect([look(70, []), look(71, [])]).toEqual([["cleared"], []]);
    expect(book().alerts).toMatchObject([{ state: "cleared", clearedAt: START + 70 * MINUTE }]);
    look(70 + 24 * 60, []);
    expect(book().alerts).toEqual([]);
  });

  it("begins when the trouble began, where the facts tell, and is forgotten if it ends too soon", () => {
    const { look, book } = fleet();
    expect(look(0, [{ ...rate, since: START - 5 * MINUTE }])).toEqual(["raised"]);
    const other = fleet();
    expect([other.look(0, [rate]), other.look(3, []), other.look(4, [rate]), other.look(8, [rate])]).toEqual([
      [],
      [],
      [],
      [],
    ]);
    expect(other.look(9, [rate])).toEqual(["raised"]);
    expect(book().n).toBe(1);
  });

  it("keeps what it has to tell while it is pending again", () => {
    const { look, book } = fleet();
    look(0, [{ ...rate, since: START - 5 * MINUTE }]);
    expect(look(1, [])).toEqual(["cleared"]);
    look(2, [rate]);
    expect(book().alerts).toMatchObject([{ state: "pending", message: { n: 2, kind: "cleared" } }]);
    expect(look(3, [])).toEqual([]);
    expect(book().alerts).toMatchObject([
      { state: "cleared", clearedAt: START + MINUTE, message: { kind: "cleared" } },
    ]);
  });

  it("of a rule that no process watches any more is cleared after an hour", () => {
    const { look } = fleet();
    look(0, [{ ...rate, since: START - 5 * MINUTE }]);
    const without = resolveRules({ errorRate: false });
    const book = bookFrom(JSON.stringify(fleetBook()));
    const at = (minute: number) => ({ conditions: [], rules: without, mutes: [], now: START + minute * MINUTE });
    expect(bookAfter(book, at(59)).alerts).toMatchObject([{ state: "raised" }]);
    expect(bookAfter(book, at(60)).alerts).toMatchObject([{ state: "cleared" }]);
    function fleetBook(): AlertBook {
      return bookAfter(EMPTY_BOOK, { conditions: [{ ...rate, since: 1 }], rules: RULES, mutes: [], now: START });
    }
  });
});

describe("a mute", () => {
  const mute = (until: number | null, subject: string | null = null): AlertMute => {
    return { rule: "errorRate", subject, until: until === null ? null : START + until * MINUTE, by: "ada", why: null };
  };
  const old = { ...rate, since: START - 5 * MINUTE };

  it("keeps an alert from being told until it ends", () => {
    const { look, book } = fleet();
    expect(look(0, [old], [mute(10)])).toEqual([]);
    expect(book().alerts).toMatchObject([{ state: "raised", message: null }]);
    expect([look(9, [old], [mute(10)]), look(10, [old], [mute(10)])]).toEqual([[], ["raised"]]);
  });

  it("of an alert that ends meanwhile leaves nothing to tell, of a told one neither", () => {
    const { look } = fleet();
    expect([look(0, [old], [mute(null)]), look(1, [], [mute(null)]), look(2, [])]).toEqual([[], [], []]);
    const other = fleet();
    expect([other.look(0, [old]), other.look(1, [], [mute(null)])]).toEqual([["raised"], []]);
  });

  it("of another subject changes nothing", () => {
    expect(fleet().look(0, [old], [mute(null, "service:api")])).toEqual(["raised"]);
  });
});

describe("stored texts", () => {
  it("that another version wrote in another form count as none", () => {
    expect([bookFrom("{"), bookFrom("[]"), bookFrom('{"n":1}'), bookFrom("null")]).toEqual([
      EMPTY_BOOK,
      EMPTY_BOOK,
      EMPTY_BOOK,
      EMPTY_BOOK,
    ]);
    expect(bookFrom('{"n":1,"alerts":[{"rule":"newest"},null,5]}')).toEqual({ n: 1, lookedAt: 0, alerts: [] });
    expect(mutesFrom('{"mutes":[{"rule":"score","subject":null,"until":5},null,{"rule":"x"}]}', 6)).toEqual([]);
    expect(sinkFrom('{"told":{"a":"b","c":4},"failing":7,"by":3}', "log")).toMatchObject({
      told: { c: 4 },
      by: null,
      failing: null,
    });
  });
});

describe("a sink", () => {
  const book = bookAfter(EMPTY_BOOK, {
    conditions: [
      { ...rate, since: 1 },
      { ...rate, rule: "newCause", subject: "cause:f1", since: 1 },
    ],
    rules: RULES,
    mutes: [],
    now: START,
  });

  it("tells each message once, the oldest first, and those from its severity on", () => {
    let sink = newSink("log", book);
    const names = (least: "info" | "error") => untoldOf(sink, book, RULES, least).map(({ rule }) => rule);
    expect([names("info"), names("error")]).toEqual([["errorRate", "newCause"], ["errorRate"]]);
    const [first] = untoldOf(sink, book, RULES, "info");
    sink = withMark(sink, first as NonNullable<typeof first>, book, START);
    expect(names("info")).toEqual(["newCause"]);
  });

  it("is left to the process that tells until its time has passed, and to no process before the next try", () => {
    const sink = withIntent(newSink("log", book), "a", START + 1_000);
    expect([mayTell(sink, "a", START), mayTell(sink, "b", START), mayTell(sink, "b", START + 1_000)]).toEqual([
      true,
      false,
      true,
    ]);
    const failed = withFailure(withFailure(sink, "it answered 500", START), "it answered 500", START + 30_000);
    expect(failed).toMatchObject({ by: null, tries: 2, next: START + 90_000, failing: { since: START } });
    expect([mayTell(failed, "a", START + 89_999), mayTell(failed, "a", START + 90_000)]).toEqual([false, true]);
    const often = Array.from({ length: 60 }).reduce<typeof failed>((each) => withFailure(each, "x", START), failed);
    expect(often.next).toBe(START + 3_600_000);
  });

  it("that is new is not told what was over before", () => {
    const over = bookAfter(book, { conditions: [], rules: RULES, mutes: [], now: START + MINUTE });
    expect(untoldOf(newSink("log", over), over, RULES, "info")).toEqual([]);
  });
});

describe("a message", () => {
  const alert = {
    ...rate,
    text: 'a <b> & "c"\u001b[31m\nnext',
    since: START,
    seenAt: START,
    raisedAt: START,
    clearedAt: null,
  };
  const message = messageOf({ ...alert, state: "raised", message: { n: 7, kind: "raised", at: START } }, "error");

  it("has an id that is the same when it is told twice, and no control characters", () => {
    expect(message.id).toBe("errorRate#7");
    for (const control of ["\n", "\u001b"]) expect(messageLine(message)).not.toContain(control);
    expect(messageForm(message)).toMatchObject({
      version: 1,
      kind: "raised",
      severity: "error",
      since: "2027-01-15T08:00:00.000Z",
      clearedAt: null,
    });
    expect(messageLine(testMessage(START))).toContain("test");
  });

  it("in the form of Slack escapes what Slack would read, and is never too long", () => {
    const form = slackForm(message) as { text: string; blocks: { text?: { text: string } }[] };
    expect(form.text).toContain("a &lt;b&gt; &amp; ");
    const long = slackForm({ ...message, text: "😀".repeat(3_000) }) as typeof form;
    expect(long.blocks[0]?.text?.text.length).toBeLessThanOrEqual(3_000);
    expect(long.text.isWellFormed()).toBe(true);
  });
});
