// The program's entry: makes room for many upstream requests, then runs the subcommand.
// Refuses to start on a wrong setting, with one sentence that names it.
import { makeRoomForRequests, wantsWorkers } from "./env.ts";

// Databases, key files and copies are nobody else's to read, whoever made the directory.
process.umask(0o077);
makeRoomForRequests();
// Loaded only now: a process that is about to replace itself would evaluate every module for nothing.
const args = process.argv.slice(2);
const { runCommand } = await (wantsWorkers(args) ? import("./workers.ts") : import("./cli.ts"));
await runCommand(args);
