// The libraries, each driven by a script in drivers/ as a program that uses it would: asked whole, streamed, and in a loop of tools.
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { expectCharges, expectDataOnly, expectThat, traffic, UNKNOWN } from "./cases.ts";
import type { Case, Client, Field } from "./cases.ts";
import type { Need, Registry } from "./install.ts";
import { runClient } from "./run.ts";
import { MODELS, RERANKER } from "./stage.ts";
import { PROOF } from "./upstream.ts";
import type { Scenario } from "./upstream.ts";
import { QUESTION, SAID, THOUGHT, WEATHER } from "./words.ts";

/** One way into the gateway that a library has. */
interface Surface {
  name: string;
  dialect: DialectName;
  /** What it brings back of the thinking before a tool call; not every library does. */
  bringsProof?: boolean;
  /** It can only ask and be streamed to, or not even that. */
  tasks?: readonly string[];
  /** Over these upstreams; its own dialect and Claude's unless given. */
  over?: readonly DialectName[];
  /** Whose unknown model, refusals and pings are tested, too. */
  isFull?: boolean;
}

interface Library {
  name: string;
  version: string;
  need: Need;
  /** The driver's file. */
  driver: string;
  surfaces: readonly Surface[];
}

const DRIVERS = join(import.meta.dir, "drivers");
const LIMIT_SECONDS = 45;
const SILENCE_MS = 1500;
const TASKS = ["text", "stream", "loop"];
const TOOL = { tool: /^weather$/, args: { city: "Ghent" } };

/** Modules are looked for from a script's own folder: Node's drivers are copied beside the packages. */
function commandFor(registry: Registry, driver: string, dir: string): string[] {
  if (registry === "pip") return [join(dir, "bin/python"), join(DRIVERS, driver)];
  for (const file of readdirSync(DRIVERS))
    if (file.endsWith(".mjs")) copyFileSync(join(DRIVERS, file), join(dir, file));
  return ["node", join(dir, driver)];
}

interface Drive {
  library: Pick<Library, "need" | "driver">;
  surface: Pick<Surface, "name">;
  model: string;
  task: string;
  field: Field;
  scenario: Scenario;
}

interface Driven {
  code: number | null;
  lines: string[];
  seen: string;
}

async function drive({ library, surface, model, task, field, scenario }: Drive): Promise<Driven> {
  const { stage, installed } = field;
  const { door, upstream, key } = stage;
  door.exchanges.length = 0;
  upstream.play(scenario);
  const command = commandFor(library.need.registry, library.driver, installed.dir);
  const run = await runClient(() => ({
    command: [...command, surface.name, model, task],
    bin: installed.bin,
    env: {
      WEIR_URL: door.url,
      WEIR_KEY: key,
      PYTHONDONTWRITEBYTECODE: "1",
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
    },
    limitSeconds: LIMIT_SECONDS,
  }));
  return {
    code: run.code,
    lines: run.stdout.trim().split("\n"),
    seen: `${run.stdout.trim()}\n${run.stderr.trim().slice(-300)}\n${traffic(door.exchanges)}`,
  };
}

const label = ({ name }: Surface, over: DialectName): string => `${name} over ${over}`;
const first = (dialect: DialectName): string => MODELS[dialect][0] ?? "";
/** What asks without tools gets the answer at once. */
const TALK: Scenario = {
  replies: [{ thinking: THOUGHT, call: TOOL }, { text: SAID }],
  aside: { thinking: THOUGHT, text: SAID },
};

function basics(library: Library, surface: Surface, over: DialectName, isRecorded: boolean): Case {
  return {
    name: `${label(surface, over)}: whole, streamed, loop`,
    rows: surface.bringsProof ? "W3" : undefined,
    async run(field) {
      const model = first(over);
      const driven = await drive({ library, surface, field, model, task: "basics", scenario: TALK });
      for (const task of surface.tasks ?? TASKS)
        expectThat(driven.lines.includes(`${task}: ${SAID}`), `the answer by ${task}`, driven.seen);
      expectThat(driven.code === 0, "exit code 0", driven.seen);
      expectDataOnly(field.stage.door.exchanges);
      const second = field.stage.upstream.asked.filter(({ text }) => text.includes(WEATHER));
      // A provider that stores its answers is only told which one is meant.
      const isBack = (text: string) => text.includes(PROOF) || text.includes('"item_reference"');
      if (surface.bringsProof && over !== "openai-chat")
        expectThat(
          second.length > 0 && second.every(({ text }) => isBack(text)),
          "the thinking's proof back at the upstream in the second turn",
          driven.seen,
        );
      await expectCharges(field);
      if (isRecorded)
        await field.record?.({
          dialect: surface.dialect,
          model,
          prompt: QUESTION,
          scenario: TALK,
          surface: surface.name,
        });
    },
  };
}

function pings(library: Library, surface: Surface, over: DialectName): Case {
  return {
    name: `${label(surface, over)}: a stream through pings and silence`,
    rows: "W1 W11",
    async run(field) {
      const scenario = { ...TALK, pings: true, silenceMs: SILENCE_MS };
      const driven = await drive({ library, surface, field, model: first(over), task: "stream", scenario });
      expectThat(driven.lines.includes(`stream: ${SAID}`), "the answer", driven.seen);
      expectDataOnly(field.stage.door.exchanges);
      await expectCharges(field);
    },
  };
}

interface Refused {
  name: string;
  rows: string;
  model: string;
  scenario: Scenario;
  /** What the library's error says: status first. */
  says: RegExp;
  code: RegExp;
}

const refusals = (over: DialectName): Refused[] => [
  {
    name: "unknown model",
    rows: "W5",
    model: UNKNOWN,
    scenario: TALK,
    says: /^error: (404|None|undefined) .*no-such-model/s,
    code: /^404 model_not_found$/,
  },
  {
    name: "the upstream's 401",
    rows: "W8",
    model: first(over),
    scenario: { replies: [], refusal: { status: 401, kind: "auth" } },
    says: /^error: (?!401)/,
    code: /^502 upstream_auth$/,
  },
  {
    name: "too long a conversation",
    rows: "W7",
    model: first(over),
    scenario: { replies: [], refusal: { status: 400, kind: "context" } },
    says: /^error: (400|None|undefined) .*(context|prompt is too long|token count)/is,
    code: /^400 .*context_length/,
  },
];

function refused(library: Library, surface: Surface, over: DialectName, row: Refused): Case {
  return {
    name: `${label(surface, over)}: ${row.name}`,
    rows: row.rows,
    async run(field) {
      const { model, scenario } = row;
      const driven = await drive({ library, surface, field, model, task: "stream", scenario });
      const line = driven.lines.find((each) => each.startsWith("error: ")) ?? "";
      expectThat(driven.code === 3 && row.says.test(line), `an error like ${String(row.says)}`, driven.seen);
      const codes = field.stage.door.exchanges.map(
        ({ status, answerHeaders }) => `${status} ${String(answerHeaders["x-weir-error-code"])}`,
      );
      expectThat(
        codes.length > 0 && codes.every((code) => row.code.test(code)),
        `${String(row.code)}, not ${codes.join(", ")}`,
        driven.seen,
      );
      await expectCharges(field);
    },
  };
}

function casesOf(library: Library): Case[] {
  return library.surfaces.flatMap((surface) => {
    const over = surface.over ?? [...new Set<DialectName>([surface.dialect, "anthropic"])];
    // Another dialect's upstream than the client's own: its refusals have to be put into other words.
    const foreign: DialectName = surface.dialect === "anthropic" ? "gemini" : "anthropic";
    return [
      ...over.map((dialect, at) => basics(library, surface, dialect, at === 0)),
      ...(surface.isFull
        ? [
            ...over.map((dialect) => pings(library, surface, dialect)),
            ...refusals(foreign).map((row) => refused(library, surface, foreign, row)),
          ]
        : []),
    ];
  });
}

const full = true;
const CHAT: Surface = { name: "chat", dialect: "openai-chat", isFull: full };
const RESPONSES: Surface = { name: "responses", dialect: "openai-responses", bringsProof: true };
const MESSAGES: Surface = { name: "messages", dialect: "anthropic", over: ["anthropic", "gemini"] };
const GENERATE: Surface = { name: "generate", dialect: "gemini", isFull: full };
/** Chat completions have no member for a proof, and old SDKs none for thinking. */
const OLD_CHAT: Surface = { ...CHAT, isFull: false };

const npm = (...packages: string[]): Need => ({ registry: "npm", packages });
const pip = (...packages: string[]): Need => ({ registry: "pip", packages });

const openaiSdk = (version: string, surfaces: readonly Surface[]): Library => ({
  name: "openai",
  version,
  need: npm(`openai@${version}`),
  driver: "openai.mjs",
  surfaces,
});

const LIBRARIES: readonly Library[] = [
  {
    name: "google-genai for Python",
    version: "2.34.0",
    need: pip("google-genai==2.34.0"),
    driver: "google_genai.py",
    surfaces: [{ ...GENERATE, bringsProof: true }],
  },
  {
    name: "google-genai for Python",
    version: "3.4.0",
    need: pip("google-genai==3.4.0"),
    driver: "google_genai.py",
    surfaces: [{ ...GENERATE, bringsProof: true }],
  },
  {
    name: "AI SDK",
    version: "7.0.173",
    need: npm("ai@7.0.173", "@ai-sdk/openai@4.0.118", "@ai-sdk/anthropic@4.0.105", "@ai-sdk/google@4.0.121"),
    driver: "ai-sdk.mjs",
    surfaces: [
      { ...RESPONSES, isFull: full, over: ["openai-responses", "anthropic", "gemini", "openai-chat"] },
      OLD_CHAT,
      { ...MESSAGES, bringsProof: true },
      { ...GENERATE, bringsProof: true },
    ],
  },
  {
    name: "LangChain for Node",
    version: "1.6.0",
    need: npm(
      "@langchain/core@1.4.0",
      "@langchain/openai@1.6.0",
      "@langchain/anthropic@1.5.11",
      "@langchain/google-genai@2.3.2",
    ),
    driver: "langchain.mjs",
    surfaces: [CHAT, { ...RESPONSES, bringsProof: false }, MESSAGES, GENERATE],
  },
  {
    name: "LangChain for Python",
    version: "1.4.7",
    need: pip(
      "langchain==1.4.7",
      "langchain-openai==1.7.3",
      "langchain-anthropic==1.7.7",
      "langchain-google-genai==4.4.2",
    ),
    driver: "langchain_models.py",
    surfaces: [CHAT, { ...RESPONSES, bringsProof: false }, MESSAGES, GENERATE],
  },
  {
    name: "pydantic-ai",
    version: "2.62.0",
    need: pip("pydantic-ai==2.62.0"),
    driver: "pydantic_models.py",
    surfaces: [CHAT, { ...RESPONSES, bringsProof: false }, MESSAGES, GENERATE],
  },
  {
    name: "LiteLLM",
    version: "1.106.2",
    need: pip("litellm==1.106.2", "mcp==2.3.0"),
    driver: "litellm_models.py",
    surfaces: [CHAT, MESSAGES, GENERATE],
  },
  openaiSdk("4.104.0", [OLD_CHAT, RESPONSES]),
  openaiSdk("5.23.2", [OLD_CHAT, RESPONSES]),
  openaiSdk("6.49.0", [OLD_CHAT, RESPONSES]),
  openaiSdk("7.57.0", [CHAT, { ...RESPONSES, isFull: full }]),
  {
    name: "openai for Python",
    version: "3.54.0",
    need: pip("openai==3.54.0"),
    driver: "openai_sdk.py",
    surfaces: [CHAT, { ...RESPONSES, isFull: full }],
  },
  {
    name: "@anthropic-ai/sdk",
    version: "0.60.0",
    need: npm("@anthropic-ai/sdk@0.60.0"),
    driver: "anthropic.mjs",
    surfaces: [{ ...MESSAGES, bringsProof: true }],
  },
  {
    name: "@anthropic-ai/sdk",
    version: "1.12.0",
    need: npm("@anthropic-ai/sdk@1.12.0"),
    driver: "anthropic.mjs",
    surfaces: [{ ...MESSAGES, bringsProof: true, isFull: full }],
  },
  {
    name: "anthropic for Python",
    version: "2.12.0",
    need: pip("anthropic==2.12.0"),
    driver: "anthropic_sdk.py",
    surfaces: [{ ...MESSAGES, bringsProof: true, isFull: full }],
  },
  {
    name: "@google/genai",
    version: "2.32.0",
    need: npm("@google/genai@2.32.0"),
    driver: "google-genai.mjs",
    surfaces: [{ ...GENERATE, bringsProof: true }],
  },
  {
    name: "@google/genai",
    version: "3.1.0",
    need: npm("@google/genai@3.1.0"),
    driver: "google-genai.mjs",
    surfaces: [{ ...GENERATE, bringsProof: true }],
  },
  {
    name: "groq-sdk",
    version: "1.6.0",
    need: npm("groq-sdk@1.6.0"),
    driver: "groq.mjs",
    surfaces: [{ ...OLD_CHAT, tasks: ["text", "stream"] }],
  },
  {
    name: "@mistralai/mistralai",
    version: "2.7.0",
    need: npm("@mistralai/mistralai@2.7.0"),
    driver: "mistral.mjs",
    surfaces: [{ ...OLD_CHAT, tasks: ["text", "stream"] }],
  },
];

/** Both versions of Cohere's client rank two documents. */
function ranks(surface: string): Case {
  return {
    name: `rerank ${surface}`,
    async run(field) {
      const library = { need: COHERE.need, driver: "cohere.mjs" };
      const driven = await drive({
        library,
        surface: { name: surface },
        field,
        model: RERANKER,
        task: "text",
        scenario: TALK,
      });
      expectThat(driven.lines.includes("text: a weir"), "the document about the weir first", driven.seen);
      await expectCharges(field);
    },
  };
}

const COHERE = { name: "cohere-ai", version: "8.1.0", need: npm("cohere-ai@8.1.0") };

export const libraryClients: readonly Client[] = [
  ...LIBRARIES.map((library) => ({
    name: library.name,
    version: library.version,
    need: library.need,
    cases: casesOf(library),
  })),
  { ...COHERE, cases: ["v1", "v2"].map(ranks) },
];
