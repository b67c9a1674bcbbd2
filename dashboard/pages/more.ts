// The pages that an incident does not begin with: a chunk of their own, fetched once the first page stands.
export { Policies } from "./policies.tsx";
export { Queues } from "./queues.tsx";
export { Recipe } from "./recipe.tsx";
export { Schedules } from "./schedules.tsx";
export { Search } from "./search.tsx";
export { Services } from "./services.tsx";
export { Workers } from "./workers.tsx";
