// A provider in the four dialects for real clients: which model is asked, and how often tools have answered, decide what it says.
// Refuses timers but the one pause that a scenario asks for, because clients' own idle timers are what is tested there.
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { readTurn } from "./turns.ts";
import type { Turn } from "./turns.ts";
import { speak } from "./speech.ts";

/** One answer of the model. */
export interface Reply {
  thinking?: string;
  text?: string;
  /** The first offered tool whose name matches is called: with these arguments, or with free text. */
  call?: { tool: RegExp; args?: Record<string, unknown>; input?: string };
}

/** What the upstream does with a conversation: its replies by the number of tool results, or a refusal of everything. */
export interface Scenario {
  replies: readonly Reply[];
  /** To a request that offers other tools than the replies call, or none. */
  aside?: Reply;
  /** Pings (Anthropic's and, as comments, everybody's) before the first content and between the pieces. */
  pings?: boolean;
  /** Milliseconds of silence before the first content. */
  silenceMs?: number;
  refusal?: { status: number; kind: "auth" | "context" | "quota" };
}

interface Asked {
  /** The body. */
  text: string;
  /** Whether the answer was one of a model, which is charged. */
  isAnswered: boolean;
}

export interface ScriptedUpstream {
  url: string;
  asked: Asked[];
  play(scenario: Scenario): void;
  stop(): void;
}

/** What every answer reports, so that every charge is known beforehand. */
export const USAGE = { input: 100, output: 20 };

/** The proof beside every thinking: it has to come back to this upstream in the next turn. */
export const PROOF = "c2lnbmVkLWJ5LXRoZS11cHN0cmVhbQ==";

/** What is said to a request that offers none of the tools that the scenario wants: titles, summaries, guesses. */
const ASIDE = "A note";

function dialectOf(path: string): DialectName | undefined {
  if (/:(stream)?[gG]enerateContent$/.test(path)) return "gemini";
  if (path.endsWith("/messages")) return "anthropic";
  if (path.endsWith("/chat/completions")) return "openai-chat";
  return path.endsWith("/responses") ? "openai-responses" : undefined;
}

/** The one call that is no conversation: the last document first, billed like any other answer. */
function ranking({ documents }: Record<string, unknown>): unknown {
  const count = Array.isArray(documents) ? documents.length : 0;
  const results = Array.from({ length: count }, (_, index) => ({
    index: count - 1 - index,
    relevance_score: 0.9 - index / 10,
  }));
  const total = USAGE.input + 2 * USAGE.output;
  return { id: "rerank-1", model: "reranker", results, usage: { prompt_tokens: total, total_tokens: total } };
}

const REFUSALS = {
  auth: "This account has been disabled",
  quota: "Too many requests, slow down",
  context: "",
} as const;

/** A refusal in the provider's own words; for the context's length those that its clients know. */
function refusalOf(dialect: DialectName, { status, kind }: NonNullable<Scenario["refusal"]>): unknown {
  const isContext = kind === "context";
  if (dialect === "anthropic") {
    const type = {
      auth: "authentication_error",
      quota: "rate_limit_error",
      context: "invalid_request_error",
    }[kind];
    const message = isContext ? "prompt is too long: 250000 tokens > 200000 maximum" : REFUSALS[kind];
    return { type: "error", error: { type, message } };
  }
  if (dialect === "gemini") {
    const message = isContext
      ? "The input token count (250000) exceeds the maximum number of tokens allowed (200000)."
      : REFUSALS[kind];
    const name = { auth: "UNAUTHENTICATED", quota: "RESOURCE_EXHAUSTED", context: "INVALID_ARGUMENT" }[kind];
    return { error: { code: status, message, status: name } };
  }
  const code = { auth: "invalid_api_key", quota: "rate_limit_exceeded", context: "context_length_exceeded" }[
    kind
  ];
  const message = isContext
    ? "This model's maximum context length is 200000 tokens. However, your messages resulted in 250000 tokens."
    : REFUSALS[kind];
  return { error: { message, type: "invalid_request_error", param: isContext ? "input" : null, code } };
}

/** The scenario's reply to this turn; a turn that offers other tools than it wants is somebody's aside. */
function replyTo(scenario: Scenario, turn: Turn): Reply {
  const wanted = scenario.replies.flatMap(({ call }) => (call ? [call.tool] : []));
  const has = (tool: RegExp) => turn.tools.some(({ name }) => tool.test(name));
  const aside = scenario.aside ?? { text: ASIDE };
  if (!wanted.every(has)) return aside;
  return scenario.replies[Math.min(turn.results, scenario.replies.length - 1)] ?? aside;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function answer({
  scenario,
  dialect,
  turn,
  response,
}: {
  scenario: Scenario;
  dialect: DialectName;
  turn: Turn;
  response: ServerResponse;
}): Promise<void> {
  const words = speak(dialect, turn, replyTo(scenario, turn));
  if (!turn.isStream) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(words.whole));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  const ping = dialect === "anthropic" ? 'event: ping\ndata: {"type": "ping"}\n\n' : ": ping\n\n";
  for (const [index, frame] of words.frames.entries()) {
    if (response.destroyed) return;
    response.write(frame);
    // After the first frame, where Anthropic's own ping stands.
    if (scenario.pings && dialect !== "gemini") response.write(ping);
    if (index === 0 && scenario.silenceMs) await pause(scenario.silenceMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
}

/** Starts the provider on a free port of loopback. */
export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  const asked: Asked[] = [];
  let scenario: Scenario = { replies: [] };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    response.on("error", () => {});
    request.on("error", () => {});
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const path = (request.url ?? "").split("?")[0] ?? "";
      const send = (status: number, body: unknown) => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(body));
      };
      const text = Buffer.concat(parts).toString();
      if (path.endsWith("/rerank")) {
        asked.push({ text, isAnswered: true });
        return send(200, ranking(JSON.parse(text) as Record<string, unknown>));
      }
      const dialect = dialectOf(path);
      if (!dialect) return send(404, { error: { message: "no such path", type: "invalid_request_error" } });
      asked.push({ text, isAnswered: !scenario.refusal });
      if (scenario.refusal) return send(scenario.refusal.status, refusalOf(dialect, scenario.refusal));
      const body = JSON.parse(text) as Record<string, unknown>;
      answer({ scenario, dialect, turn: readTurn(dialect, path, body), response }).catch(() =>
        response.destroy(),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    play(next) {
      asked.length = 0;
      scenario = next;
    },
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
