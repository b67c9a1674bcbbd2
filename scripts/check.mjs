// `npm run check`: types, lint, format and the tidy test, for the seconds between two edits.

import { verify } from "./verify.mjs";

await verify(["test/tidy.test.ts"]);
