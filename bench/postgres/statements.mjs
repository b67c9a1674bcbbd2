// Hears of statements, so that all are measured from their first claim to their last completion on disk. Libraries do not
// tell of the first, and of the second not all do: graphile-worker does not wait for the write when it reports a job
// complete, and pg-boss reports nothing.

/** Calls `sent` before, and `answered` with the answer of, every statement of this `pg` that `isIt` recognises. */
export function hearStatements(pg, isIt, { sent = () => undefined, answered = () => undefined }) {
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (...args) {
    const [first] = args;
    const text = typeof first === "string" ? first : (first?.text ?? "");
    if (!isIt(first?.name ?? "", text)) return query.apply(this, args);
    sent();
    const last = args.at(-1);
    if (typeof last === "function") {
      args[args.length - 1] = (error, answer) => {
        if (answer) answered(answer);
        last(error, answer);
      };
      return query.apply(this, args);
    }
    const answer = query.apply(this, args);
    answer.then(answered, () => undefined);
    return answer;
  };
}
