// Times as people read them, in the views and in the indexes that serve them.

/** A time as people read it. */
export const time = (column: string): string => `to_timestamp(${column} / 1000.0)`;
