// Guarantees for the clients of `bun run test:clients`, from their recordings: what each puts on the wire is answered in its own
// dialect over all four upstreams, tools come back in the form in which it offered them, and what is lost is told.
// Refuses to know the clients by name: a new recording is a new row.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { collect } from "../../src/protocol/assemble.ts";
import type { Answer } from "../../src/protocol/assemble.ts";
import { DIALECTS } from "../../src/protocol/dialects.ts";
import { validateEvents } from "../../src/protocol/validate-events.ts";
import { createSseReader } from "../../src/relay/wire/framing.ts";
import { answerValues, recordings, replayed, toldBy } from "../clients/recording.ts";
import type { RecordedCall, Recording, Told } from "../clients/recording.ts";
import { readTurn } from "../clients/turns.ts";
import type { OfferedTool, Turn } from "../clients/turns.ts";
import { PROOF, startScriptedUpstream, USAGE } from "../clients/upstream.ts";
import type { Scenario, ScriptedUpstream } from "../clients/upstream.ts";
import { SAID, THOUGHT } from "../clients/words.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";
import { UPSTREAMS } from "../support/dialect-upstream.ts";

type Json = Record<string, unknown>;

const NAMES = Object.keys(UPSTREAMS) as DialectName[];
const ids = (prefix: string): string => `${prefix}1`;

/** Members that another dialect has no word for: whoever sends them is told that they were left out. */
const TOLD: Readonly<Record<DialectName, readonly string[]>> = {
  "openai-chat": [],
  "openai-responses": ["client_metadata"],
  anthropic: ["context_management"],
  gemini: ["labels", "safetySettings"],
};

let app: TestApp;
let upstream: ScriptedUpstream;
let key: string;
beforeAll(async () => {
  upstream = await startScriptedUpstream();
  app = await startTestApp();
  for (const { type, model } of Object.values(UPSTREAMS))
    await app.createChannel({ type, models: model, baseUrl: upstream.url });
  await app.deps.options.set("SelfUseModeEnabled", "true");
  const user = await app.createUser({ quota: 1_000_000_000 });
  key = (await app.createToken(user.id)).key;
});
afterAll(async () => {
  await app.close();
  upstream.stop();
});

function scenarioOf({ calls, isAnsweredAside }: Recording): Scenario {
  const ending = (tool: string) => new RegExp(`${tool.replaceAll(/[.*+?()[\]{}|\\]/g, "\\$&")}$`);
  return {
    replies: [
      ...calls.map(({ tool, ...call }) => ({ thinking: THOUGHT, call: { ...call, tool: ending(tool) } })),
      { text: SAID },
    ],
    aside: isAnsweredAside ? { thinking: THOUGHT, text: SAID } : undefined,
  };
}

/** The answer's blocks, after every check that a dialect has for its events. */
function read(dialect: DialectName, turn: Turn, text: string): Answer {
  if (!turn.isStream) return DIALECTS[dialect].decodeAnswer(JSON.parse(text), { newId: ids });
  const decoder = DIALECTS[dialect].decodeStream({ newId: ids });
  const reader = createSseReader();
  const frames = [...reader.push(new TextEncoder().encode(text)), ...reader.end()];
  const events = frames.flatMap((frame) => decoder.push(frame));
  events.push(...decoder.end());
  expect(validateEvents(events)).toEqual([]);
  expect(events.some(({ type }) => type === "fail")).toBe(false);
  return collect(events);
}

const textOf = ({ blocks }: Answer): string =>
  blocks.flatMap(({ kind, text }) => (kind === "text" ? [text] : [])).join("");

/** The call of this name comes back in the form in which the tool was offered. */
function expectCall(answer: Answer, text: string, { args, input }: RecordedCall, tool: OfferedTool): void {
  const calls = answer.blocks.filter(({ kind }) => kind === "tool-call");
  expect(calls.map(({ name }) => name)).toEqual([tool.name]);
  const items = answerValues(text).flatMap((value) => {
    const { response, output } = value as { response?: { output?: Json[] }; output?: Json[] };
    return response?.output ?? output ?? [];
  });
  const item = items.findLast(({ name }) => name === tool.name);
  if (tool.isFree) expect(item).toMatchObject({ type: "custom_tool_call", input });
  else expect(JSON.parse(calls[0]?.text || "{}")).toEqual(args ?? { input });
  if (tool.namespace !== undefined) expect(item).toMatchObject({ namespace: tool.namespace });
}

/** Google's parsers know neither comments nor blank keep-alives. */
function expectDataLines(text: string): void {
  const frames = text.split(/\r?\n\r?\n/).filter((frame) => frame !== "");
  expect(frames.filter((frame) => !/^data: [^\n]*$/.test(frame))).toEqual([]);
  expect(text).not.toMatch(/(\r?\n){3,}/);
}

/** Whether this request brings back what carries a proof: the proof itself, or the id of the thinking that it belongs to. */
function bringsProof(body: string, answers: readonly Told[]): boolean {
  const carriers = answers.flatMap((told) =>
    [...told].flatMap(([kind, values]) =>
      /signature$|encrypted_content$|^reasoning\.id$/i.test(kind) ? values : [],
    ),
  );
  return carriers.some((value) => body.includes(JSON.stringify(value)));
}

async function lastRows(count: number): Promise<{ quota: number; prompt: number; dropped: string[] }[]> {
  const { db, ledger } = app.deps;
  await ledger.flush();
  const rows = await db.orm.select().from(db.t.logs).orderBy(db.t.logs.id);
  return rows.slice(-count).map(({ quota, promptTokens, other }) => {
    const { dropped } = JSON.parse(other || "{}") as { dropped?: string[] };
    return { quota, prompt: promptTokens, dropped: dropped ?? [] };
  });
}

for (const [name, recording] of recordings()) {
  const { client, version, dialect, calls, requests } = recording;
  describe(`${client} ${version} (${name})`, () => {
    for (const over of NAMES) {
      test(`is answered over ${over}`, async () => {
        const { model } = UPSTREAMS[over];
        upstream.play(scenarioOf(recording));
        const answers: Told[] = [];
        for (const request of requests) {
          const { path, body } = replayed(request, model, answers);
          const response = await fetch(app.url + path, {
            method: request.method,
            headers: {
              ...(request.headers as Record<string, string>),
              "content-type": "application/json",
              [recording.auth]: recording.auth === "authorization" ? `Bearer ${key}` : key,
            },
            body,
          });
          const text = await response.text();
          expect([response.status, text.slice(0, response.ok ? 0 : 400)]).toEqual([200, ""]);
          if (bringsProof(body, answers) && over !== "openai-chat")
            expect(upstream.asked.at(-1)?.text).toMatch(new RegExp(`${PROOF}|item_reference`));
          answers.push(toldBy(text));

          const turn = readTurn(dialect, path, JSON.parse(body) as Json);
          const answer = read(dialect, turn, text);
          if (dialect === "gemini" && turn.isStream) expectDataLines(text);
          const offered = calls.map((call) => turn.tools.find(({ name: each }) => each.endsWith(call.tool)));
          const [call, tool] = [calls[turn.results], offered[turn.results]];
          if (offered.every((each) => each !== undefined) && call && tool)
            expectCall(answer, text, call, tool);
          else expect([SAID, "A note"]).toContain(textOf(answer));
        }
        const rows = await lastRows(requests.length);
        expect(rows.map(({ prompt }) => prompt)).toEqual(requests.map(() => USAGE.input));
        expect(rows.every(({ quota }) => quota > 0)).toBe(true);
        const foreign = over === dialect ? [] : TOLD[dialect];
        requests.forEach(({ body }, index) => {
          const lost = foreign.filter((member) => member in body);
          expect(rows[index]?.dropped).toEqual(expect.arrayContaining(lost));
        });
      });
    }
  });
}
