// Ends what a process started when that process is gone before it could do so itself, also by `kill -9`. A small shell
// waits at the other end of a pipe; when the pipe closes, it ends what was noted last and deletes the folder of it.

import { spawn } from "node:child_process";

const SCRIPT = `trap '' INT TERM HUP
target=
while read -r line; do target=$line; done
[ -z "$target" ] && exit 0
kill -s CONT -- "$target" 2>/dev/null
kill -s "$1" -- "$target" 2>/dev/null
tries=0
while [ $tries -lt 100 ] && kill -s 0 -- "$target" 2>/dev/null; do tries=$((tries + 1)); sleep 0.1; done
kill -s KILL -- "$target" 2>/dev/null
[ -n "$2" ] && rm -rf -- "$2"
exit 0`;

/** Watches over one process at a time (a group is a negative number), ended by the signal and killed if it does not go. */
export function startGuardian({ signal, folder = "" }) {
  const guardian = spawn("/bin/sh", ["-c", SCRIPT, "guardian", signal, folder], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  // Without a shell there is no guardian, which only matters after a kill.
  guardian.on("error", () => undefined);
  guardian.stdin.on("error", () => undefined);
  // It must not keep us alive: its whole purpose begins when we are gone.
  guardian.unref();
  guardian.stdin.unref?.();
  return {
    /** From now on it is this one. */
    watch: (pid) => void guardian.stdin.write(`${pid}\n`),
    /** There is nothing to end at the moment. */
    forget: () => void guardian.stdin.write("\n"),
    /** All is ended and deleted; the guardian goes. */
    dismiss: () => void guardian.stdin.end("\n"),
  };
}
