/**
 * Sees to it that nothing outlives the process that started it, even when that is killed with SIGKILL: a small shell
 * of its own process group reads a pipe that only we hold, and when the pipe ends without a farewell it kills the
 * processes it was told of and removes the files.
 */
import { type ChildProcess, spawn } from "node:child_process"

const script = `
pids=
while read -r word rest; do
  case $word in
    pids) pids=$rest ;;
    end) exit 0 ;;
  esac
done
for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
rm -rf "$@" 2>/dev/null || { sleep 1; rm -rf "$@"; }
`

export interface Reaper {
  /** The processes to end when we die: all of them, each time. */
  readonly watch: (pids: ReadonlyArray<number>) => void
  /** All was cleaned up in good order. */
  readonly end: () => void
}

/** @param paths files and folders to remove when we die */
export const startReaper = (paths: ReadonlyArray<string>): Reaper => {
  const shell: ChildProcess = spawn("sh", ["-c", script, "reaper", ...paths], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"]
  })
  shell.unref()
  // The pipe must not keep this process alive, and a shell that is gone must not end it.
  const pipe = shell.stdin as NodeJS.WritableStream & { unref?: () => void }
  pipe.unref?.()
  pipe.on("error", () => undefined)
  return {
    watch: (pids) => void pipe.write(`pids ${pids.join(" ")}\n`),
    end: () => void pipe.end("end\n")
  }
}
