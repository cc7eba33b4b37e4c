// Writes a client's recording from what went through the door in its recorded case.
import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { DialectName } from "../../src/protocol/canonical.ts";
import type { Exchange } from "./door.ts";
import { markOf, MODEL_MARK, RECORDINGS, SAME_MARK, toldBy } from "./recording.ts";
import type { RecordedCall, RecordedRequest, Recording, Told } from "./recording.ts";
import { scrubber } from "./scrub.ts";
import type { Scrubber } from "./scrub.ts";
import type { Scenario } from "./upstream.ts";

export interface Recorded {
  client: string;
  version: string;
  /** Follows client and version in the file's name. */
  surface?: string;
  dialect: DialectName;
  model: string;
  prompt: string;
  scenario: Scenario;
  exchanges: readonly Exchange[];
}

const AUTH = ["authorization", "x-api-key", "x-goog-api-key"] as const;
/** Of the connection, and what the sender's machine would tell. */
const NOT_KEPT = new Set<string>(
  [
    AUTH,
    ["host", "connection", "content-length", "transfer-encoding", "accept-encoding", "content-type"],
    ["user-agent", "x-stainless-arch", "x-stainless-os", "x-stainless-runtime-version"],
    ["x-goog-api-client", "traceparent"],
  ].flat(),
);

function headersOf({ rawHeaders }: Exchange, scrub: Scrubber): Record<string, string> {
  const kept = rawHeaders.filter(([name]) => !NOT_KEPT.has(name.toLowerCase()));
  return Object.fromEntries(
    kept.map(([name, value]) => [
      name,
      value.startsWith("{") ? String(scrub.value(value)) : scrub.text(value),
    ]),
  );
}

/** Marks instead of what earlier answers gave out, anywhere in the body. */
function marked(value: unknown, answers: readonly Told[]): unknown {
  if (typeof value === "string") return markOf(value, answers) ?? value;
  if (Array.isArray(value)) return value.map((each) => marked(each, answers));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, marked(each, answers)]));
}

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");

/** Calls of the scenario in words that JSON can hold. */
function callsOf({ replies }: Scenario, scrub: Scrubber): RecordedCall[] {
  return replies.flatMap(({ call }) => {
    if (!call) return [];
    const { tool, args, input } = call;
    return [
      {
        tool: tool.source.replaceAll(/[\^$]/g, ""),
        ...(args ? { args: scrub.value(args) as Record<string, unknown> } : {}),
        ...(input === undefined ? {} : { input }),
      },
    ];
  });
}

/** Members that stand the same in the request before are named, not told again. */
function withoutRepeats(request: RecordedRequest, before: RecordedRequest | undefined): RecordedRequest {
  const isSame = (name: string, value: unknown) =>
    typeof value === "object" && JSON.stringify(value) === JSON.stringify(before?.body[name]);
  const members = Object.entries(request.body).map(([name, value]) => [
    name,
    isSame(name, value) ? SAME_MARK : value,
  ]);
  const headers =
    JSON.stringify(request.headers) === JSON.stringify(before?.headers) ? SAME_MARK : request.headers;
  return { ...request, headers, body: Object.fromEntries(members) };
}

/** Where runs lie: one path for the home, one for the project. */
function rootsIn(text: string): string[] {
  return [...new Set(text.match(/\/[^\s"'\\]*\/weir-clients\/runs\/run-\w+/g) ?? []), `${homedir()}/`];
}

export async function writeRecording(recorded: Recorded): Promise<void> {
  const { client, version, surface, dialect, model, prompt, scenario, exchanges } = recorded;
  const names = scenario.replies.flatMap(({ call }) => (call ? [call.tool] : []));
  const isCalled = (name: string) => names.some((tool) => tool.test(name));
  const roots = rootsIn(JSON.stringify([exchanges.map(({ body }) => body), scenario.replies]));
  const scrub = scrubber(isCalled, roots, prompt);
  const posts = exchanges.filter(({ method }) => method === "POST");
  const answers: Told[] = [];
  const requests = posts.map((exchange) => {
    const body = marked(JSON.parse(exchange.body), answers);
    answers.push(toldBy(exchange.answer));
    const text = JSON.stringify({ headers: headersOf(exchange, scrub), body: scrub.value(body) });
    const made = JSON.parse(text.replaceAll(model, MODEL_MARK)) as Pick<RecordedRequest, "headers" | "body">;
    return { method: exchange.method, path: exchange.url.replaceAll(model, MODEL_MARK), ...made };
  });
  const sent = new Set(posts[0]?.rawHeaders.map(([name]) => name.toLowerCase()));
  const recording: Recording = {
    client,
    version,
    dialect,
    auth: AUTH.find((name) => sent.has(name)) ?? "authorization",
    calls: callsOf(scenario, scrub),
    isAnsweredAside: scenario.aside !== undefined,
    requests: requests.map((request, index) => withoutRepeats(request, requests[index - 1])),
  };
  mkdirSync(RECORDINGS, { recursive: true });
  const major = version
    .split(".")
    .slice(0, version.startsWith("0.") ? 2 : 1)
    .join("-");
  const name = [client, major, surface ?? ""]
    .filter((part) => part !== "")
    .map(slug)
    .join("-");
  const path = join(RECORDINGS, `${name}.json`);
  await Bun.write(path, JSON.stringify(recording, undefined, 2));
  // The check's format; JSON of one line each where it fits.
  Bun.spawnSync([process.execPath, "fmt", "--no-script", path], { stdout: "ignore", stderr: "inherit" });
}
