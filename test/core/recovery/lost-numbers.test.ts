// Numbers that a function would change silently, because JavaScript cannot hold them.
import fc from "fast-check";
import { expect, it } from "vitest";
import { lostNumber, losesNumbers } from "../../../src/core/recovery/lost-numbers.ts";

it.each([
  ['{"id":9007199254740993}', "9007199254740993"],
  ["[1e400]", "1e400"],
  ["[-1e400,1]", "-1e400"],
  ["1e-400", "1e-400"],
  ["[0.12345678901234567890]", "0.12345678901234567890"],
  ["12345678901234567890", "12345678901234567890"],
])("%s loses %s", (text, number) => {
  expect(lostNumber(text)).toBe(number);
  expect(losesNumbers(text)).toBe(true);
});

it.each([
  '{"id":9007199254740992,"n":0.1,"m":1.50,"o":-0,"p":1E+2,"q":1e21,"r":100000000000000000000000}',
  '{"9007199254740993":"9007199254740993","s":"\\"1e400"}',
  '[0.000001,1e-7,123456789.123456,0e999999999999,"\\\\",5e-324,1.7976931348623157e308]',
  "0.00000000000000000000",
  "",
  "true",
])("%s loses nothing", (text) => expect(lostNumber(text)).toBe(null));

it("never happens to what JavaScript has written", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (n) => !losesNumbers(JSON.stringify([n]))),
  );
});

it("happens to every whole number that comes back as another one", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), (n) => {
      expect(losesNumbers(`{"a":[${n}]}`)).toBe(
        BigInt(Number(n).toString().includes("e") ? expanded(Number(n)) : Number(n)) !== n,
      );
    }),
  );
});

/** The digits that JavaScript shows for a large number, without the exponent. */
function expanded(n: number): string {
  const [mantissa = "", power = "0"] = String(n).split("e+");
  const [whole = "", part = ""] = mantissa.split(".");
  return whole + part.padEnd(Number(power), "0");
}

it("looks at every character once", () => {
  expect(lostNumber(`["${'\\"'.repeat(500_000)}",${"1".repeat(300)}]`)).toBe("1".repeat(300));
  expect(lostNumber(`[1${"0".repeat(200_000)}e-200000]`)).toBe(null);
});
