// The coding agents as their users start them, each with the settings that README's table names.
// Refuses their telemetry and updates by their own documented settings: there is no network behind the gateway.
import { join } from "node:path";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { expectCharges, expectDataOnly, expectThat, traffic, UNKNOWN } from "./cases.ts";
import type { Case, Client, Field } from "./cases.ts";
import type { Need } from "./install.ts";
import { runClient } from "./run.ts";
import type { Order, Place, Run } from "./run.ts";
import { MODELS } from "./stage.ts";
import type { Reply, Scenario } from "./upstream.ts";
import { FILE, LINE, PATCH, SAID, THOUGHT } from "./words.ts";

interface Launch {
  place: Place;
  /** Of the gateway, without a slash at the end. */
  url: string;
  key: string;
  model: string;
  prompt: string;
}

interface Agent {
  name: string;
  version: string;
  need: Need;
  /** How its user starts it on a prompt, without asking back. */
  launch(launch: Launch): Pick<Order, "command"> & Partial<Order>;
  /** What the model says to write the file at this path, in the agent's own tools. */
  write(path: string): Reply;
  /** What it speaks. */
  dialect: DialectName;
  /** The upstreams over which it edits a file; the first is recorded. */
  over: readonly DialectName[];
  /** Models for which it speaks otherwise than for those of the first upstream: recorded, too. */
  alsoRecorded?: DialectName;
  /** What it prints when the conversation is too long, where that is told apart. */
  tooLong?: { over: DialectName; words: RegExp };
  more?: (agent: Agent) => Case[];
}

const EDIT_SECONDS = 60;
/** A model that nobody has: said at once, not after a row of retries, which take over 45 s; a busy machine starts slowly. */
const UNKNOWN_SECONDS = 30;
const SILENCE_MS = 1500;
const WRITE = `Write a line into ${FILE}.`;

interface Act {
  agent: Agent;
  field: Field;
  model: string;
  prompt: string;
  seconds: number;
  scenario(place: Place): Scenario;
}

interface Acted extends Run {
  scenario: Scenario;
  /** What it printed and what went over the wire, for the words of a failure. */
  seen: string;
}

async function act({ agent, field, model, prompt, seconds, scenario }: Act): Promise<Acted> {
  const { stage, installed } = field;
  const { door, key, upstream } = stage;
  door.exchanges.length = 0;
  let played: Scenario = { replies: [] };
  const run = await runClient((place) => {
    played = scenario(place);
    upstream.play(played);
    const launched = agent.launch({ place, url: door.url, key, model, prompt });
    return { bin: installed.bin, limitSeconds: seconds, ...launched };
  });
  return { ...run, scenario: played, seen: `${run.text.trim().slice(-400)}\n${traffic(door.exchanges)}` };
}

const first = (dialect: DialectName): string => MODELS[dialect][0] ?? "";

/** It thinks, calls the agent's tool, the agent writes the file, and the second turn is said to the user. */
function edits(agent: Agent, dialect: DialectName, isRecorded: boolean): Case {
  return {
    name: `edits a file over ${dialect}`,
    async run(field) {
      const model = first(dialect);
      const run = await act({
        agent,
        field,
        model,
        prompt: WRITE,
        seconds: EDIT_SECONDS,
        scenario: ({ project }) => ({
          replies: [{ thinking: THOUGHT, ...agent.write(join(project, FILE)) }, { text: SAID }],
        }),
      });
      expectThat(run.code === 0, `exit code 0, not ${String(run.code)}`, run.seen);
      const text = run.files[FILE];
      expectThat(text?.trim() === LINE, `${FILE} with its line, not ${String(text)}`, run.seen);
      expectThat(run.stdout.includes(SAID), "the answer on the screen", run.seen);
      expectDataOnly(field.stage.door.exchanges);
      await expectCharges(field);
      if (isRecorded)
        await field.record?.({
          dialect: agent.dialect,
          model,
          prompt: WRITE,
          scenario: run.scenario,
          surface: dialect === agent.alsoRecorded ? dialect : undefined,
        });
    },
  };
}

/** Claude pings and is silent for longer than the gateway's keep-alive; the user sees the answer once. */
function pings(agent: Agent, dialect: DialectName): Case {
  return {
    name: `waits through pings of ${dialect}`,
    rows: "W1 W11",
    async run(field) {
      const run = await act({
        agent,
        field,
        model: first(dialect),
        prompt: "Say hello.",
        seconds: EDIT_SECONDS,
        scenario: () => ({
          replies: [{ thinking: THOUGHT, text: SAID }],
          pings: true,
          silenceMs: SILENCE_MS,
        }),
      });
      expectThat(run.code === 0, `exit code 0, not ${String(run.code)}`, run.seen);
      expectThat(run.stdout.includes(SAID), "the answer on the screen", run.seen);
      expectDataOnly(field.stage.door.exchanges);
      await expectCharges(field);
    },
  };
}

/** No retries that last: the gateway says 404 in the agent's dialect, and the agent ends and says so. */
function unknownModel(agent: Agent): Case {
  return {
    name: "ends at once for an unknown model",
    rows: "W5",
    async run(field) {
      const run = await act({
        agent,
        field,
        model: UNKNOWN,
        prompt: "Say hello.",
        seconds: UNKNOWN_SECONDS,
        scenario: () => ({ replies: [{ text: SAID }] }),
      });
      expectThat(run.code !== null, `an end within ${UNKNOWN_SECONDS} s`, run.seen);
      expectThat(
        /no-such-model|not found|not exist|404/i.test(run.text),
        "the model's name or its absence",
        run.seen,
      );
      const statuses = field.stage.door.exchanges.map(({ status }) => status);
      expectThat(!statuses.some((status) => status >= 500), "no 5xx, which agents retry", run.seen);
      await expectCharges(field);
    },
  };
}

/** The upstream refuses the operator's key: 502 with its own code, and no word that the user's key is wrong. */
function denied(agent: Agent): Case {
  return {
    name: "does not blame the user's key for the upstream's 401",
    rows: "W8",
    async run(field) {
      const run = await act({
        agent,
        field,
        model: first(agent.over[0] ?? "anthropic"),
        prompt: "Say hello.",
        seconds: UNKNOWN_SECONDS,
        scenario: () => ({ replies: [], refusal: { status: 401, kind: "auth" } }),
      });
      const asked = field.stage.door.exchanges.filter(({ method }) => method === "POST");
      const isTold = asked.every(
        ({ status, answerHeaders }) =>
          status === 502 && answerHeaders["x-weir-error-code"] === "upstream_auth",
      );
      expectThat(asked.length > 0 && isTold, "502 upstream_auth", run.seen);
      const blamed = /invalid api key|log ?in again|\/login|unauthorized|authentication/i.exec(run.text);
      expectThat(blamed === null, "no word of the user's key", run.seen);
      await expectCharges(field);
    },
  };
}

/** Another dialect's upstream says that the conversation is too long; the agent knows the words, which it compacts by. */
function tooLong(agent: Agent, { over, words }: NonNullable<Agent["tooLong"]>): Case {
  return {
    name: `knows a conversation that is too long for ${over}`,
    rows: "W7",
    async run(field) {
      const run = await act({
        agent,
        field,
        model: first(over),
        prompt: "Say hello.",
        seconds: EDIT_SECONDS,
        scenario: () => ({ replies: [], refusal: { status: 400, kind: "context" } }),
      });
      const codes = field.stage.door.exchanges
        .filter(({ method }) => method === "POST")
        .map(({ status, answerHeaders }) => `${status} ${String(answerHeaders["x-weir-error-code"])}`);
      expectThat(
        /^400 .*context_length/.test(codes[0] ?? ""),
        "400 and a code of the context's length",
        run.seen,
      );
      expectThat(words.test(run.text), `the agent's own ${String(words)}`, run.seen);
      await expectCharges(field);
    },
  };
}

function clientOf(agent: Agent): Client {
  const { name, version, need } = agent;
  return {
    name,
    version,
    need,
    cases: [
      ...agent.over.map((dialect, index) =>
        edits(agent, dialect, index === 0 || dialect === agent.alsoRecorded),
      ),
      pings(agent, "anthropic"),
      ...agent.over
        .slice(0, 1)
        .filter((each) => each !== "anthropic")
        .map((dialect) => pings(agent, dialect)),
      unknownModel(agent),
      denied(agent),
      ...(agent.tooLong ? [tooLong(agent, agent.tooLong)] : []),
      ...(agent.more?.(agent) ?? []),
    ],
  };
}

const npm = (spec: string): Need => ({ registry: "npm", packages: [spec] });
const json = (value: unknown): string => JSON.stringify(value, undefined, 2);

const GEMINI_CLI: Agent = {
  name: "Gemini CLI",
  version: "0.61.0",
  need: npm("@google/gemini-cli@0.61.0"),
  dialect: "gemini",
  over: ["gemini", "anthropic", "openai-chat", "openai-responses"],
  launch: ({ url, key, model, prompt }) => ({
    command: ["gemini", "-p", prompt, "-m", model, "-y", "--skip-trust"],
    env: { GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: url },
    files: {
      "~/.gemini/settings.json": json({
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      }),
    },
  }),
  write: (path) => ({ call: { tool: /^write_file$/, args: { file_path: path, content: `${LINE}\n` } } }),
};

function codexConfig({ url, model }: Launch, catalog?: string): string {
  return `model = "${model}"
model_provider = "weir"
${catalog ? `model_catalog_json = "${catalog}"\n` : ""}
[model_providers.weir]
name = "Weir"
base_url = "${url}/v1"
env_key = "WEIR_KEY"
wire_api = "responses"
`;
}

const CODEX_COMMAND = [
  "codex",
  "exec",
  "--skip-git-repo-check",
  "--dangerously-bypass-approvals-and-sandbox",
];

const CODEX: Agent = {
  name: "Codex",
  version: "0.169.0",
  need: npm("@openai/codex@0.169.0"),
  dialect: "openai-responses",
  over: ["openai-responses", "anthropic", "gemini", "openai-chat"],
  launch: (launch) => ({
    command: [...CODEX_COMMAND, launch.prompt],
    env: { WEIR_KEY: launch.key },
    files: { "~/.codex/config.toml": codexConfig(launch) },
  }),
  // Models that it does not know get its shell alone, which takes patches, too.
  write: () => ({ call: { tool: /exec_command$/, args: { cmd: `apply_patch <<'EOF'\n${PATCH}\nEOF` } } }),
  tooLong: { over: "anthropic", words: /context window/i },
  more: (agent) =>
    (["openai-responses", "anthropic", "gemini", "openai-chat"] as const).map((dialect) =>
      codexPatch(agent, dialect),
    ),
};

/** Codex's own catalogue of models, with the entry of a model that has the free-text patch tool under another name. */
function catalogFor(model: string): string[] {
  const program = `
const { models } = JSON.parse(require("node:child_process").execFileSync("codex", ["debug", "models"], { maxBuffer: 1e8 }));
const known = models.find((each) => each.slug === "gpt-5.5");
require("node:fs").writeFileSync(process.argv[1], JSON.stringify({ models: [{ ...known, slug: ${JSON.stringify(model)} }] }));`;
  return ["node", "-e", program];
}

/** Two turns with a shell and the free-text patch tool, and a third that says it is done. */
function codexPatch(agent: Agent, dialect: DialectName): Case {
  const launch = (given: Launch) => {
    const catalog = join(given.place.home, "catalog.json");
    const script = [
      `${catalogFor(given.model).map(quoted).join(" ")} ${quoted(catalog)}`,
      `cp ${quoted(join(given.place.home, "with-catalog.toml"))} ${quoted(join(given.place.home, ".codex/config.toml"))}`,
      `exec ${[...CODEX_COMMAND, given.prompt].map(quoted).join(" ")}`,
    ].join(" && ");
    return {
      ...agent.launch(given),
      command: ["sh", "-c", script],
      files: {
        "~/.codex/config.toml": codexConfig(given),
        "~/with-catalog.toml": codexConfig(given, catalog),
      },
    };
  };
  return {
    name: `shell and apply_patch in two turns over ${dialect}`,
    rows: "W2",
    async run(field) {
      const model = first(dialect);
      const run = await act({
        agent: { ...agent, launch },
        field,
        model,
        prompt: WRITE,
        seconds: EDIT_SECONDS,
        scenario: () => ({
          replies: [
            { thinking: THOUGHT, call: { tool: /exec_command$/, args: { cmd: "ls" } } },
            { call: { tool: /apply_patch$/, input: PATCH } },
            { text: SAID },
          ],
        }),
      });
      expectThat(run.code === 0, `exit code 0, not ${String(run.code)}`, run.seen);
      expectThat(run.files[FILE]?.trim() === LINE, `${FILE} with its line`, run.seen);
      expectThat(run.stdout.includes(SAID), "the answer on the screen", run.seen);
      await expectCharges(field);
      if (dialect === "openai-responses")
        await field.record?.({
          dialect,
          model,
          prompt: WRITE,
          scenario: run.scenario,
          surface: "patch",
        });
    },
  };
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

const CLAUDE_CODE: Agent = {
  name: "Claude Code",
  version: "2.1.330",
  need: npm("@anthropic-ai/claude-code@2.1.330"),
  dialect: "anthropic",
  over: ["anthropic", "gemini", "openai-chat", "openai-responses"],
  launch: ({ url, key, model, prompt }) => ({
    command: ["claude", "-p", prompt, "--allowedTools", "Write"],
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
  }),
  write: (path) => ({ call: { tool: /^Write$/, args: { file_path: path, content: `${LINE}\n` } } }),
  tooLong: { over: "gemini", words: /prompt is too long/i },
};

const QWEN_CODE: Agent = {
  name: "Qwen Code",
  version: "0.24.4",
  need: npm("@qwen-code/qwen-code@0.24.4"),
  dialect: "openai-chat",
  over: ["openai-chat", "anthropic", "gemini", "openai-responses"],
  launch: ({ url, key, model, prompt }) => ({
    command: ["qwen", "-y", prompt],
    env: { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: model },
    files: {
      "~/.qwen/settings.json": json({
        security: { auth: { selectedType: "openai" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      }),
    },
  }),
  write: (path) => ({ call: { tool: /^write_file$/, args: { file_path: path, content: `${LINE}\n` } } }),
};

const OPENCODE: Agent = {
  name: "OpenCode",
  version: "1.18.33",
  need: npm("opencode-ai@1.18.33"),
  dialect: "openai-chat",
  over: ["openai-chat", "anthropic", "gemini"],
  launch: ({ url, key, model, prompt }) => ({
    command: ["opencode", "run", "-m", `weir/${model}`, prompt],
    env: {
      WEIR_KEY: key,
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    },
    files: {
      "opencode.json": json({
        $schema: "https://opencode.ai/config.json",
        share: "disabled",
        autoupdate: false,
        provider: {
          weir: {
            npm: "@ai-sdk/openai-compatible",
            name: "Weir",
            options: { baseURL: `${url}/v1`, apiKey: "{env:WEIR_KEY}" },
            models: { [model]: { name: model } },
          },
        },
      }),
    },
  }),
  write: (path) => ({ call: { tool: /^write$/, args: { filePath: path, content: `${LINE}\n` } } }),
};

const COPILOT_CLI: Agent = {
  name: "Copilot CLI",
  version: "1.0.102",
  need: npm("@github/copilot@1.0.102"),
  dialect: "openai-chat",
  over: ["openai-chat", "anthropic", "gemini"],
  alsoRecorded: "gemini",
  launch: ({ url, key, model, prompt }) => ({
    command: ["copilot", "-p", prompt, "--allow-all-tools"],
    env: {
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_PROVIDER_API_KEY: key,
      COPILOT_MODEL: model,
      COPILOT_OFFLINE: "true",
    },
  }),
  write: (path) => ({ call: { tool: /^create$/, args: { path, file_text: `${LINE}\n` } } }),
};

const CLINE: Agent = {
  name: "Cline",
  version: "3.0.65",
  need: npm("cline@3.0.65"),
  dialect: "openai-chat",
  over: ["openai-chat", "anthropic", "gemini"],
  launch: ({ url, key, model, prompt }) => {
    const auth = ["cline", "auth", "-p", "openai", "-k", key, "-m", model, "-b", `${url}/v1`];
    const task = ["cline", "-P", "openai", "-m", model, prompt];
    const script = `${auth.map(quoted).join(" ")} && exec ${task.map(quoted).join(" ")}`;
    return { command: ["sh", "-c", script], env: { CLINE_TELEMETRY_DISABLED: "1" } };
  },
  write: (path) => ({ call: { tool: /^editor$/, args: { path, new_text: `${LINE}\n` } } }),
};

const CONTINUE: Agent = {
  name: "Continue",
  version: "1.5.47",
  need: npm("@continuedev/cli@1.5.47"),
  dialect: "openai-chat",
  over: ["openai-chat", "anthropic", "gemini"],
  launch: ({ url, key, model, prompt }) => ({
    command: ["cn", "-p", "--auto", "--config", "weir.yaml", prompt],
    env: { CONTINUE_TELEMETRY_ENABLED: "0" },
    files: {
      "weir.yaml": `name: Weir
version: 1.0.0
schema: v1
models:
  - name: weir
    provider: openai
    model: ${model}
    apiBase: ${url}/v1
    apiKey: ${key}
    roles: [chat]
`,
    },
  }),
  write: (path) => ({ call: { tool: /^Write$/, args: { filepath: path, content: `${LINE}\n` } } }),
};

/** No network behind the gateway, and no commits into the run's folder. */
const AIDER_FLAGS =
  "--edit-format whole --map-tokens 0 --no-check-update --analytics-disable --no-show-model-warnings " +
  "--no-show-release-notes --no-gitignore --no-auto-commits";

const AIDER: Agent = {
  name: "aider",
  version: "0.86.2",
  need: { registry: "pip", packages: ["aider-chat==0.86.2"] },
  dialect: "openai-chat",
  over: ["openai-chat", "anthropic", "gemini"],
  launch: ({ url, key, model, prompt }) => ({
    command: `aider --model openai/${model} --yes-always ${FILE} ${AIDER_FLAGS}`
      .split(" ")
      .concat("--message", prompt),
    env: { OPENAI_API_BASE: `${url}/v1`, OPENAI_API_KEY: key, LITELLM_LOCAL_MODEL_COST_MAP: "True" },
  }),
  // It has no tools: it reads blocks of text.
  write: () => ({ text: `${SAID}\n\n${FILE}\n\`\`\`\n${LINE}\n\`\`\`\n` }),
};

const AGENTS = [GEMINI_CLI, CODEX, CLAUDE_CODE, QWEN_CODE, OPENCODE, COPILOT_CLI, CLINE, CONTINUE, AIDER];

export const agentClients: readonly Client[] = AGENTS.map(clientOf);
