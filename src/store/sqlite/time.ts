// Times in readable form, for the views and the indexes that serve them.

/** A time as people write it in SQLite; comparable with `datetime('now', '-1 hour')`. */
export const time = (column: string): string => `strftime('%Y-%m-%d %H:%M:%f', ${column} / 1000.0, 'unixepoch')`;
