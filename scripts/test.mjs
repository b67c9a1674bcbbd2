// `npm test`: types, lint, format and all tests. Arguments go to vitest: `npm test -- test/core -t "full jitter"`.

import { verify } from "./verify.mjs";

await verify(process.argv.slice(2));
