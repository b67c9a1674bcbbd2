// `npm start`: makes the checkout ready and runs the demo.

import { ready } from "./ready.mjs";

ready();
await import("./demo.mjs");
