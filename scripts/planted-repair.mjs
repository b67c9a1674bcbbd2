// Defects of repair, in the form of planted-defects.mjs.

/** Each with the tests that notice it. */
export const REPAIR_DEFECTS = [
  {
    name: "a merge patch parses the payload and writes it again",
    file: "src/core/recovery/merge-patch.ts",
    was: 'const after = pieces.join("");',
    is: 'const after = JSON.stringify(JSON.parse(pieces.join("")));',
    tests: ["test/core/recovery/merge-patch.test.ts"],
    only: "keeps",
  },
];
