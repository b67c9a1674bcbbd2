// Ends the children of a process that was killed before it could do so itself. One small shell per process waits at the
// other end of a pipe; when the pipe closes, however that came, it ends every process group that was still noted there.
import { type ChildProcess, spawn } from "node:child_process";

/** Lines are `+ group seconds` and `- group`; at the end of input the groups that are left are asked to stop, then killed. */
const SCRIPT = `trap '' INT TERM HUP
groups=" "; most=0
while read -r op group seconds; do
  case $op in
    +) groups="$groups$group "; [ "$seconds" -gt "$most" ] && most=$seconds ;;
    -) groups="\${groups%% $group *} \${groups#* $group }" ;;
  esac
done
[ "$groups" = " " ] && exit 0
for group in $groups; do kill -TERM "-$group" 2>/dev/null; done
sleep "$most"
for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
exit 0`;

let guard: ChildProcess | null = null;

/** Notes a process group until the answer is called: if we are gone before, it is ended. */
export function guardGroup(group: number, killAfterMs: number): () => void {
  tell(`+ ${group} ${Math.ceil(killAfterMs / 1_000)}`);
  return () => tell(`- ${group}`);
}

function tell(line: string): void {
  guard ??= startGuard();
  guard?.stdin?.write(`${line}\n`);
}

function startGuard(): ChildProcess {
  const started = spawn("/bin/sh", ["-c", SCRIPT], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  const forget = (): void => {
    if (guard === started) guard = null;
  };
  started.on("error", forget);
  started.on("exit", forget);
  started.stdin.on("error", forget);
  // It must not keep us alive: its whole purpose begins when we are gone.
  started.unref();
  (started.stdin as unknown as { unref?: () => void }).unref?.();
  return started;
}
