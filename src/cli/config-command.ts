// `weir export`, `weir plan FILE` and `weir apply FILE`: settings as code.
// Exit codes: 0 nothing to do or applied, 1 invalid or failed (nothing changed), 2 usage, 3 differences, 4 a guard.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { variablesIn } from "../core/config/variables.ts";
// Their options count as well: which of them are secret decides what leaves this machine.
import "../core/payments/rails.ts";
import type { ConfigAnswer } from "../http/config-answer.ts";
import { readConfigText } from "./config-file.ts";
import { differenceText, exportText, guardText, problemsIn, problemText } from "./config-print.ts";
import type { FileProblem } from "./config-print.ts";
import { SiteError } from "./config-site.ts";
import type { Address, Site } from "./config-site.ts";

type ConfigVerb = "export" | "plan" | "apply";

export interface ConfigCommand {
  verb: ConfigVerb;
  args: string[];
  /** Values of variables of the environment; those that are not set are left out. */
  variables: (names: readonly string[]) => Record<string, string>;
  /** The running server where an address is given, else the data directory. */
  open: (address: Address | undefined) => Promise<Site>;
  say: (text: string) => void;
  complain: (text: string) => void;
}

const EXIT = { done: 0, failed: 1, usage: 2, differences: 3, guarded: 4 } as const;

const CONFIG_USAGE = `usage: weir export [--json]
       weir plan FILE [--json] [--accept-guards]
       weir apply FILE [--plan HASH] [--accept-guards] [--note TEXT] [--json]

FILE is YAML or JSON; - reads standard input. Without --url and --token (WEIR_URL, WEIR_TOKEN; WEIR_USER where root's
number is not 1) it is about DATA_DIR, which no server may hold then.
Ends with 0: nothing to do, or applied; 1: invalid or failed, nothing changed; 2: usage; 3: differences; 4: a guard.`;

class UsageError extends Error {}

const COMMON = {
  json: { type: "boolean" },
  url: { type: "string" },
  token: { type: "string" },
  user: { type: "string" },
} as const;
const OPTIONS = {
  export: COMMON,
  plan: { ...COMMON, "accept-guards": { type: "boolean" } },
  apply: {
    ...COMMON,
    "accept-guards": { type: "boolean" },
    plan: { type: "string" },
    note: { type: "string" },
  },
} as const;

interface Asked {
  file: string | undefined;
  isJson: boolean;
  acceptsGuards: boolean;
  planHash: string | undefined;
  note: string;
  address: Address | undefined;
}

const MAX_NOTE = 1000;

function asked({ verb, args, variables }: ConfigCommand): Asked {
  const { values, positionals } = parsed(verb, args);
  const text = (name: string): string | undefined => {
    const value = values[name];
    return typeof value === "string" ? value : undefined;
  };
  if (positionals.length !== (verb === "export" ? 0 : 1))
    throw new UsageError(verb === "export" ? "export takes no file" : `${verb} takes one FILE`);
  const set = variables(["WEIR_URL", "WEIR_TOKEN", "WEIR_USER"]);
  const url = text("url") ?? set["WEIR_URL"];
  const token = text("token") ?? set["WEIR_TOKEN"];
  const userId = text("user") ?? set["WEIR_USER"] ?? "1";
  if (url !== undefined && !/^https?:\/\/[^/]/.test(url))
    throw new UsageError(`"${url}" is no address of a server`);
  if ((url === undefined) !== (token === undefined))
    throw new UsageError("--url and --token (WEIR_URL, WEIR_TOKEN) belong together");
  if (!/^[1-9]\d*$/.test(userId)) throw new UsageError(`"${userId}" is no number of a user`);
  const planHash = text("plan");
  if (planHash !== undefined && !/^[0-9a-f]{64}$/.test(planHash))
    throw new UsageError(`"${planHash}" is no hash of a plan`);
  const [file] = positionals;
  const note = text("note") ?? (verb === "apply" ? `weir apply ${basename(file ?? "")}` : "");
  if (note.length > MAX_NOTE) throw new UsageError(`a note has at most ${MAX_NOTE} characters`);
  return {
    file,
    planHash,
    note,
    isJson: values["json"] === true,
    acceptsGuards: values["accept-guards"] === true,
    address: url === undefined || token === undefined ? undefined : { url, token, userId },
  };
}

function parsed(verb: ConfigVerb, args: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args,
      options: OPTIONS[verb],
      allowPositionals: true,
      strict: true,
    });
    return { values: values as Record<string, string | boolean | undefined>, positionals };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new SiteError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export async function configCommand(command: ConfigCommand): Promise<number> {
  const { verb, complain } = command;
  try {
    const wanted = asked(command);
    if (verb === "export") return await exporting(command, wanted);
    return await judging(command, wanted);
  } catch (error) {
    if (error instanceof UsageError) {
      complain(`${error.message}\n\n${CONFIG_USAGE}`);
      return EXIT.usage;
    }
    if (!(error instanceof SiteError)) throw error;
    complain(`weir ${verb}: ${error.message}`);
    return EXIT.failed;
  }
}

/** With the site open, and closed again however it ends. */
async function within<T>(
  command: ConfigCommand,
  { address }: Asked,
  work: (site: Site) => Promise<T>,
): Promise<T> {
  const site = await command.open(address);
  try {
    return await work(site);
  } finally {
    await site.close();
  }
}

async function exporting(command: ConfigCommand, wanted: Asked): Promise<number> {
  const exported = await within(command, wanted, (site) => site.read());
  command.say(wanted.isJson ? JSON.stringify(exported.document, null, 2) : exportText(exported).trimEnd());
  for (const name of exported.unnamed)
    command.complain(
      `weir export: left out, because several channels are called so: ${JSON.stringify(name)}`,
    );
  return EXIT.done;
}

async function judging(command: ConfigCommand, wanted: Asked): Promise<number> {
  const { verb } = command;
  const file = wanted.file ?? "-";
  const shownFile = file === "-" ? "<stdin>" : file;
  const read = readConfigText(textOf(file), file.endsWith(".json"));
  if (read.problems.length > 0) {
    const problems = read.problems.map(({ line, message }) => ({
      file: shownFile,
      line,
      path: [],
      code: "file",
      message,
    }));
    return refused(command, wanted, problems, undefined);
  }
  const request = {
    document: isMap(read.value) ? read.value : {},
    variables: command.variables(variablesIn(read.value)),
    acceptsGuards: wanted.acceptsGuards,
  };
  const answer = await within(command, wanted, (site) =>
    verb === "plan"
      ? site.plan(request)
      : site.apply({ ...request, planHash: wanted.planHash, note: wanted.note }),
  );
  if (answer.status === "invalid")
    return refused(command, wanted, problemsIn(answer, shownFile, read), answer);
  if (wanted.isJson) command.say(reportJson(answer, []));
  else for (const line of reportLines(command, wanted, answer)) command.say(line);
  return exitCode(answer);
}

const isMap = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function refused(
  { verb, say, complain }: ConfigCommand,
  { isJson }: Asked,
  problems: readonly FileProblem[],
  answer: ConfigAnswer | undefined,
): number {
  if (isJson) say(reportJson(answer, problems));
  else {
    for (const problem of problems) complain(problemText(problem));
    complain(`weir ${verb}: the file is refused, nothing was changed`);
  }
  return EXIT.failed;
}

/** One document, whatever happened: the names are those of POST /api/config/plan. */
function reportJson(answer: ConfigAnswer | undefined, problems: readonly FileProblem[]): string {
  return JSON.stringify(
    {
      format: 1,
      status: answer?.status ?? "invalid",
      revision: answer?.revision ?? null,
      plan_hash: answer?.plan_hash ?? "",
      changes: answer?.changes ?? [],
      guards: answer?.guards ?? [],
      removals: answer?.removals ?? [],
      problems,
    },
    null,
    2,
  );
}

function exitCode({ status }: ConfigAnswer): number {
  if (status === "nothing" || status === "applied") return EXIT.done;
  if (status === "differences") return EXIT.differences;
  return status === "guarded" ? EXIT.guarded : EXIT.failed;
}

const VERDICTS: Readonly<Record<string, string>> = {
  applied: "Applied.",
  guarded: "Nothing was changed: guards stand in the way.",
  mismatch: "Nothing was changed: the plan is another one by now. Look at it, and apply it by its hash.",
  moved: "Nothing was changed: settings, prices or channels changed meanwhile. Plan again.",
};

function reportLines({ verb }: ConfigCommand, wanted: Asked, answer: ConfigAnswer): string[] {
  if (answer.status === "nothing") return ["Nothing to do: the site is as the file says."];
  const lines = [...differenceText(answer).slice(1), ""];
  lines.push(...guardText(answer, wanted.acceptsGuards));
  if (verb === "plan") {
    const names = new Set(answer.changes.map(({ section, name }) => `${section} ${name}`));
    const verdict = answer.status === "guarded" ? ", and guards stand in the way" : "";
    return [
      ...lines,
      `${names.size} ${names.size === 1 ? "name differs" : "names differ"}${verdict}.`,
      `plan ${answer.plan_hash}`,
    ];
  }
  const isNew = answer.status === "mismatch";
  return [...lines, VERDICTS[answer.status] ?? answer.status, ...(isNew ? [`plan ${answer.plan_hash}`] : [])];
}
