// The run over all clients: installs one after the other, plays its cases, tells one line a client and the sum.
import { agentClients } from "./agents.ts";
import type { Client, Field } from "./cases.ts";
import { install } from "./install.ts";
import type { Installed } from "./install.ts";
import { libraryClients } from "./libraries.ts";
import { writeRecording } from "./record.ts";
import { openStage } from "./stage.ts";
import type { Stage } from "./stage.ts";

export interface Wish {
  /** Parts of names of clients; none means all. `name:case` takes the cases with that word alone. */
  filters: readonly string[];
  isRecording: boolean;
}

type Outcome = "passed" | "failed" | "not available";

/** What is not installed by this command, and why; their recordings run with the others'. */
const NOT_INSTALLED: readonly { name: string; why: string }[] = [
  {
    name: "Open WebUI",
    why: "7.4 GB of packages; tried by hand, and its recorded requests run in `bun run test`",
  },
];

const CLIENTS: readonly Client[] = [...agentClients, ...libraryClients];

/** The cases of a client that the filters name. */
function wantedCases(client: Client, filters: readonly string[]): Client["cases"] {
  if (filters.length === 0) return client.cases;
  const names = (word: string, part = "") => word.toLowerCase().includes(part.toLowerCase());
  return client.cases.filter(({ name, rows }) =>
    filters.some((filter) => {
      const [who, ...rest] = filter.split(":");
      const what = rest.join(":");
      return names(client.name, who) && names(`${name} ${rows ?? ""}`, what);
    }),
  );
}

interface Playing {
  client: Client;
  cases: Client["cases"];
  stage: Stage;
  isRecording: boolean;
}

async function play({ client, cases, stage, isRecording }: Playing): Promise<Outcome> {
  const title = `${client.name} ${client.version}`;
  let installed: Installed;
  try {
    installed = install(client.need);
  } catch (error) {
    console.log(`COULD NOT BE HAD  ${title}: ${error instanceof Error ? error.message : String(error)}`);
    return "not available";
  }
  const record: Field["record"] = (made) =>
    writeRecording({
      client: client.name,
      version: client.version,
      exchanges: stage.door.exchanges,
      ...made,
    });
  const failures: string[] = [];
  for (const each of cases) {
    try {
      await stage.begin();
      await each.run({ stage, installed, ...(isRecording ? { record } : {}) });
    } catch (error) {
      const rows = each.rows ? ` (${each.rows})` : "";
      failures.push(`${each.name}${rows}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const outcome = failures.length === 0 ? "passed" : "failed";
  console.log(`${outcome}  ${title}: ${cases.length - failures.length} of ${cases.length} cases`);
  for (const failure of failures) console.log(`    ${failure.replaceAll("\n", "\n      ")}`);
  return outcome;
}

/** Returns whether any client failed. */
export async function testClients({ filters, isRecording }: Wish): Promise<boolean> {
  const stage = await openStage();
  const counts: Record<Outcome, number> = { passed: 0, failed: 0, "not available": 0 };
  try {
    for (const client of CLIENTS) {
      const cases = wantedCases(client, filters);
      if (cases.length > 0) counts[await play({ client, cases, stage, isRecording })]++;
    }
    for (const { name, why } of filters.length === 0 ? NOT_INSTALLED : []) {
      console.log(`COULD NOT BE HAD  ${name}: ${why}`);
      counts["not available"]++;
    }
  } finally {
    await stage.close();
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts["not available"]} not available`);
  return counts.failed > 0 || counts.passed === 0;
}
