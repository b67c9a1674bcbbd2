// Ends the children of a process that was killed before it could do so itself. One small shell per process waits at the
// other end of a pipe; when the pipe closes, however that came, it ends every process group that was still noted there.
import { type ChildProcess, spawn } from "node:child_process";

/**
 * The program of that shell. Lines are `+ group seconds` and `- group`; at the end of input each group that is left is asked
 * to stop, and killed after its own seconds. A group is taken out of the list only where it is in it: of one that is not, the
 * two patterns leave the whole list each, which together are twice the list.
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
/** The groups that are noted, each with its seconds. A guard that was killed itself is replaced, and told them all. */
const noted = new Map<number, number>();

/** Notes a process group until the answer is called: if we are gone before, it is ended. */
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
  // It must not keep us alive: its whole purpose begins when we are gone.
  started.unref();
  (started.stdin as unknown as { unref?: () => void }).unref?.();
  guard = started;
  for (const [group, seconds] of noted) tell(`+ ${group} ${seconds}`);
}
