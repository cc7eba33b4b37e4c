// The scheduled backup as a process of its own: `weir backup` beside the server, less urgent than its calls.
// Refuses to outlive an orderly stop of the server, which a copy of many gigabytes would hold up.
import { setPriority } from "node:os";
import type { BackupPlan } from "./core/backup/schedule.ts";
import { ownProgram } from "./env.ts";
import type { Env } from "./env.ts";

/** As `nice` without a number. */
const NICE = 10;

/** When and how this process has its books copied. */
export function backupPlan(env: Env): BackupPlan {
  return {
    atMinutes: env.backupAtMinutes,
    async run(zone, signal) {
      const { words, settings } = ownProgram(env);
      const child = Bun.spawn([...words, "backup", `--prune=${zone}`, "--json"], {
        cwd: env.dataDir,
        env: settings,
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
        signal,
        killSignal: "SIGKILL",
      });
      try {
        setPriority(child.pid, NICE);
      } catch {
        // It has ended already, or may not be slowed down here.
      }
      const [report, problems] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      if (report.trim() === "")
        throw new Error(problems.trim().split("\n").at(-1) || `exit ${child.exitCode}`);
      return report;
    },
  };
}
