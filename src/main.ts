// The program's entry: makes room for many upstream requests, then runs the subcommand.
// Refuses to start on a wrong setting, with one sentence that names it.
import { runCommand } from "./cli.ts";
import { makeRoomForRequests } from "./env.ts";

makeRoomForRequests();
await runCommand(process.argv.slice(2));
