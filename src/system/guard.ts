// Ends the children of a process that was killed before it could do so itself. One small shell per process waits at the
// other end of a pipe; when the pipe closes for any reason, it ends every process group still listed.
import { type ChildProcess, spawn } from "node:child_process";

/**
 * The program of that shell. Lines are `+ group seconds` and `- group`. At the end of input each group left is asked to
 * stop, and killed after its own seconds. A group is removed only if it is in the list: for one that is not, each of
 * the two patterns would leave the whole list, and together they would double it.
 */
export const GUARD_SCRIPT = `trap '' INT TERM HUP
groups=" "
while read -r op group seconds; do
  case $op in
    +) groups="$groups$group:$seconds " ;;
    -) case $groups in *" $group:"*) groups="\${groups%% $group:*} \${groups#* $group:* }" ;; esac ;;
  esac
done
for each in $groups; do
  kill -TERM "-\${each%:*}" 2>/dev/null
  { sleep "\${each#*:}"; kill -KILL "-\${each%:*}" 2>/dev/null; } &
done
wait
exit 0`;

let guard: ChildProcess | null = null;
/** The listed groups, each with its seconds. If the guard itself was killed, a new one gets the whole list. */
const noted = new Map<number, number>();

/**
 * Lists a process group until the returned function is called: if this process ends before that, the guard ends the
 * group.
 */
export function guardGroup(group: number, killAfterMs: number): () => void {
  noted.set(group, Math.ceil(killAfterMs / 1_000));
  if (guard === null) startGuard();
  else tell(`+ ${group} ${noted.get(group)}`);
  return () => {
    if (noted.delete(group)) tell(`- ${group}`);
  };
}

function tell(line: string): void {
  guard?.stdin?.write(`${line}\n`);
}

function startGuard(): void {
  const started = spawn("/bin/sh", ["-c", GUARD_SCRIPT], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  const forget = (): void => {
    if (guard === started) guard = null;
  };
  started.on("error", forget);
  started.on("exit", forget);
  started.stdin.on("error", forget);
  // It must not keep this process alive: its work begins when this process is gone.
  started.unref();
  (started.stdin as unknown as { unref?: () => void }).unref?.();
  guard = started;
  for (const [group, seconds] of noted) tell(`+ ${group} ${seconds}`);
}
