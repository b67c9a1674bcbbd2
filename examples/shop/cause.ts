// A cause of death in few words.

/** A cause without what its class says already. */
export function shortCause(message: string): string {
  return message.replace(/^The input of (\S+) does not match its schema: /, "$1: ").replace(/\.$/, "");
}
