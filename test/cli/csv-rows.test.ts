// CSV as records: other bytes than UTF-8, quotes that nobody closes, and what came before them.
import { describe, expect, it } from "vitest";
import { recordsOf } from "../../src/cli/records-in.ts";

type Chunks = readonly (string | Uint8Array)[];

async function* each(chunks: Chunks): AsyncGenerator<string | Uint8Array> {
  yield* chunks;
}

/** The rows as they come, and with what it ends. */
async function read(chunks: Chunks): Promise<{ rows: unknown[]; places: string[]; error: string | null }> {
  const rows: unknown[] = [];
  const places: string[] = [];
  try {
    for await (const { text, place } of recordsOf(each(chunks), "csv")) {
      rows.push(JSON.parse(text));
      places.push(place);
    }
    return { rows, places, error: null };
  } catch (error) {
    return { rows, places, error: (error as Error).message };
  }
}

/** In pieces of one byte, so that every character is torn apart. */
function torn(bytes: Uint8Array): Uint8Array[] {
  return Array.from(bytes, (byte) => Uint8Array.of(byte));
}

describe("the rows of a CSV", () => {
  it("have their line, whatever pieces the bytes come in", async () => {
    const text = '\ufeffid,name\r\n1,"a,""é\n€"""\r\n\r\n2,😀\r\n';
    const rows = [
      { id: "1", name: 'a,"é\n€"' },
      { id: "2", name: "😀" },
    ];
    for (const chunks of [[text], torn(Buffer.from(text))])
      expect(await read(chunks)).toEqual({ rows, places: ["line 3", "line 5"], error: null });
    expect(await read(["id\n"])).toEqual({ rows: [], places: [], error: null });
    expect(await read([])).toEqual({ rows: [], places: [], error: null });
  });

  it("end with the line that is not UTF-8, and with those before it", async () => {
    const bad = [Buffer.from("id,name\n1,a\n2,b\n3,"), Uint8Array.of(0xff), Buffer.from("\n4,d\n")];
    const expected = {
      rows: [
        { id: "1", name: "a" },
        { id: "2", name: "b" },
      ],
      places: ["line 2", "line 3"],
      error: "line 4: expected UTF-8; got other bytes; convert the file",
    };
    expect(await read(bad)).toEqual(expected);
    expect(await read([Buffer.concat(bad)])).toEqual(expected);
    expect(await read(torn(Buffer.concat(bad)))).toEqual(expected);
    // The last character is not whole.
    const cut = Buffer.from("id\n1\n€").subarray(0, -1);
    expect(await read([cut])).toMatchObject({ rows: [{ id: "1" }], error: expect.stringContaining("line 3: ") });
  });

  it("end with the line where a quote was opened, and with those before it", async () => {
    const { rows, error } = await read([`id,name\n1,a\n\n2,b\n3,"c\n${"4,d\n".repeat(50)}`]);
    expect(rows).toHaveLength(2);
    expect(error).toBe("line 5: expected CSV; got a quote that is opened and not closed; close it");
    expect((await read(['"id\n1\n'])).error).toContain("line 1: ");
  });

  it("are read no further than a record may be long", async () => {
    let chunks = 0;
    async function* endless(): AsyncGenerator<string> {
      yield 'id,name\n1,a\n2,"b\n';
      for (; chunks < 500; chunks += 1) yield "x,y\n".repeat(65_536);
    }
    const rows: string[] = [];
    const reading = async (): Promise<void> => {
      for await (const { text } of recordsOf(endless(), "csv")) rows.push(text);
    };
    await expect(reading()).rejects.toThrow(
      "line 3: expected a record of at most 16777216 bytes; got more; close its quote, or split it",
    );
    expect(rows).toEqual(['{"id":"1","name":"a"}']);
    expect(chunks).toBeLessThan(100);
  });
});
