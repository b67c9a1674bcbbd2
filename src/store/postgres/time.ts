// Times in readable form, for the views and the indexes that serve them.

/** A time in readable form; null for a number that is not a time, so that one odd row does not break a view. */
export const time = (column: string): string =>
  `case when ${column} between -62135596800000 and 8640000000000000 then to_timestamp(${column} / 1000.0) end`;
