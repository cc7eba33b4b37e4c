// What a key may use and spend, and the task families: model lists, billing, Midjourney, Suno.
import {
  anything,
  either,
  exact,
  flag,
  integer,
  JSON_TYPE,
  list,
  modelInPath,
  nullable,
  number,
  oneOf,
  open,
  ref,
  text,
  withoutVersion,
  word,
} from "../schema.ts";
import type { Parameter, RelayArea, RelayOperation } from "../schema.ts";

const query = (name: string, description: string): Parameter => ({
  name,
  in: "query",
  description,
  schema: { type: "string" },
});

const header = (name: string, description: string): Parameter => ({
  name,
  in: "header",
  description,
  schema: { type: "string" },
});

const listDialect = [
  header("anthropic-version", "With it the answer has Anthropic's form."),
  header("x-goog-api-key", "With it the answer has Google's form."),
];

const googlePage = [
  query("pageSize", "Rows of a page; 50 where absent, at most 1000."),
  query("pageToken", "`nextPageToken` of the page before."),
];

const MODEL_LIST: Readonly<Record<string, RelayOperation>> = {
  "GET /v1/models": {
    tag: "Models",
    summary: "List the models of the key",
    description: "In the form of the client: OpenAI's, or by its headers Anthropic's or Google's.",
    parameters: [
      ...listDialect,
      query("client_version", "Codex's: with it `models` describes those that it does not know itself."),
      query("limit", "Anthropic's form: rows of a page; 20 where absent, at most 1000."),
      query("after_id", "Anthropic's form: the page behind this model."),
      query("before_id", "Anthropic's form: the page before this model."),
      ...googlePage.map((each) => ({ ...each, description: `Google's form: ${each.description}` })),
    ],
    answer: {
      [JSON_TYPE]: {
        schema: either(ref("ModelList"), ref("AnthropicModelList"), ref("GeminiModelList")),
        example: {
          success: true,
          object: "list",
          data: [{ id: "gpt-4o-mini", object: "model", created: 1_626_777_600, owned_by: "openai" }],
        },
      },
    },
    errors: "anyModelList",
  },
};

export const models: RelayArea = {
  schemas: {
    Model: open(
      {
        id: text(),
        object: word("model"),
        created: integer("The same for every model."),
        owned_by: text("Provider."),
        "permission?": list(open({})),
        "root?": text(),
        "parent?": { type: "null" },
      },
      "A model in OpenAI's form.",
    ),
    ModelList: open({
      "success?": flag(),
      object: word("list"),
      data: list(ref("Model")),
      "models?": list(ref("CodexModel"), "Only for Codex."),
    }),
    CodexModel: open({
      slug: text("Name of the model."),
      display_name: text(),
      "context_window?": integer("Tokens that it reads."),
      "base_instructions?": text(),
    }),
    AnthropicModel: open({ type: word("model"), id: text(), display_name: text(), created_at: text() }),
    AnthropicModelList: open({
      data: list(ref("AnthropicModel")),
      has_more: flag(),
      first_id: nullable(text()),
      last_id: nullable(text()),
    }),
    GeminiModel: open({
      name: text("`models/` and the name."),
      "baseModelId?": text(),
      "version?": text(),
      displayName: text(),
      supportedGenerationMethods: list(text()),
    }),
    GeminiModelList: open({ models: list(ref("GeminiModel")), "nextPageToken?": text() }),
  },
  operations: {
    ...MODEL_LIST,
    ...withoutVersion(MODEL_LIST),
    "GET /v1/models/{model}": {
      tag: "Models",
      summary: "Show one model",
      route: "GET /v1/models/*",
      parameters: [modelInPath, ...listDialect],
      answer: {
        [JSON_TYPE]: {
          schema: either(ref("Model"), ref("AnthropicModel"), ref("GeminiModel")),
        },
      },
      errors: "anyModelList",
    },
    "GET /v1beta/models": {
      tag: "Models",
      summary: "List the models of the key in Google's form",
      parameters: googlePage,
      answer: { [JSON_TYPE]: { schema: ref("GeminiModelList") } },
      errors: "gemini",
    },
    "GET /v1beta/models/{model}": {
      tag: "Models",
      summary: "Show one model in Google's form",
      route: "GET /v1beta/models/*",
      parameters: [modelInPath],
      answer: { [JSON_TYPE]: { schema: ref("GeminiModel") } },
      errors: "gemini",
    },
  },
};

const subscription: RelayOperation = {
  tag: "Billing",
  summary: "What the key may spend",
  description: "For all time: dates are ignored.",
  answer: { [JSON_TYPE]: { schema: ref("BillingSubscription") } },
  errors: "openai",
};
const spent: RelayOperation = {
  tag: "Billing",
  summary: "What the key has spent",
  description: "For all time: dates are ignored.",
  answer: { [JSON_TYPE]: { schema: ref("BillingUsage") } },
  errors: "openai",
};

const quote: RelayOperation = {
  tag: "Billing",
  summary: "Ask what a call would cost",
  description:
    "Asks no upstream and charges nothing. Amounts are whole units, `cost` the same in dollars. `expected` takes an answer as long as " +
    "the median of the caller's last 50 of the model, else a quarter of its limit; `worst` its limit, or the cap of the call " +
    "(`X-Max-Cost`, `X-Max-Quota`, `max_quota` of the key); `reserve` is what would be held now for the prompt as it is " +
    "counted: far from the limit a call holds a token for each byte of it. The call that brings `quote_id` in the " +
    "header `X-Quote` is charged at these prices until `expires_at`, whatever becomes of them: for the same key and model only. " +
    "Tasks of Midjourney and Suno are quoted by the paths of their submissions. Of `/v1/realtime` (`model` in the body, or in the " +
    "path's query) `expected` is one answer, `worst` what balance or cap pay of a session; turns that begin before `expires_at` have " +
    "its prices.",
  body: {
    schema: ref("QuoteRequest"),
    example: {
      path: "/v1/chat/completions",
      body: {
        model: "gpt-4o-mini",
        messages: [{ role: "user", content: "What is a weir?" }],
        max_tokens: 400,
      },
    },
  },
  answer: { [JSON_TYPE]: { schema: ref("Quote") } },
  errors: "openai",
};

export const billing: RelayArea = {
  schemas: {
    QuoteRequest: exact({
      path: text(
        "An inference route, Gemini's with the model's name: `/v1beta/models/gemini-2.5-pro:generateContent`; or `/mj/submit/imagine`, " +
          "`/suno/submit/music`, `/v1/realtime` and the like.",
      ),
      body: { type: "object", additionalProperties: true, description: "What the call would send." },
    }),
    Quote: exact({
      quote_id: text("For the header `X-Quote`."),
      revision: text("Names the prices in force."),
      model: text(),
      group: text("Of an automatic key the first that serves the model."),
      input_tokens: exact({
        count: integer(),
        method: oneOf(["encoder", "similar_encoder", "estimate"]),
        error: number("Share by which the count may be off."),
      }),
      output_tokens: integer("What `expected` assumes."),
      expected: integer(),
      worst: integer(),
      reserve: integer(),
      cost: exact({ expected: number(), worst: number(), reserve: number() }),
      affordable: flag("Whether balance and key pay it now."),
      group_ratio: number(),
      lines: list(
        exact({
          kind: text(),
          count: number("Tokens or calls."),
          unit_price: number("Dollars."),
          per: oneOf(["mtok", "call", "kcall"]),
          quota: number("Units, with the group ratio."),
        }),
        "What `expected` is made of.",
      ),
      rules: list(anything(), "Conditions of the price rules that act on it."),
      expires_at: integer("Unix seconds."),
    }),
    BillingSubscription: exact({
      object: word("billing_subscription"),
      has_payment_method: flag(),
      soft_limit_usd: number("Spent and left together, in the site's currency."),
      hard_limit_usd: number(),
      system_hard_limit_usd: number(),
      access_until: integer("Unix seconds; 0 = the key does not expire."),
    }),
    BillingUsage: exact({ object: word("list"), total_usage: number("Hundredths of the currency.") }),
  },
  operations: {
    "POST /v1/quote": quote,
    "POST /pg/quote": {
      ...quote,
      summary: "Ask what a question in the playground would cost",
      description: "As the signed-in user, without a key, for the group that the inner body names.",
    },
    "GET /v1/dashboard/billing/subscription": subscription,
    "GET /v1/dashboard/billing/usage": spent,
    "GET /dashboard/billing/subscription": subscription,
    "GET /dashboard/billing/usage": spent,
  },
};

const taskId: Parameter = {
  name: "id",
  in: "path",
  required: true,
  description: "Id of a task of the caller.",
  schema: { type: "string" },
};

const DRAWING_KINDS = [
  "imagine",
  "change",
  "simple-change",
  "action",
  "modal",
  "describe",
  "shorten",
  "blend",
  "upload-discord-images",
];

const drawing = (row: Omit<RelayOperation, "tag" | "errors">): RelayOperation => ({
  tag: "Midjourney",
  errors: "midjourney",
  ...row,
});

/** Behind /mj, and the same behind a mode of speed. */
const DRAWING_CALLS: Readonly<Record<string, RelayOperation>> = {
  "GET /mj/image/{id}": {
    ...drawing({
      summary: "The picture of a task",
      description: "Open to everybody who knows the id.",
      parameters: [taskId],
      answer: { "image/*": { schema: { type: "string", format: "binary" } } },
    }),
    errors: "picture",
  },
  "POST /mj/submit/{kind}": drawing({
    summary: "Submit a drawing or a follow-up",
    parameters: [
      {
        name: "kind",
        in: "path",
        required: true,
        description: "What is to be done.",
        schema: { type: "string", enum: DRAWING_KINDS },
      },
    ],
    body: { schema: ref("MidjourneySubmission"), example: { prompt: "A weir at dawn --ar 3:2" } },
    answer: {
      [JSON_TYPE]: {
        schema: ref("MidjourneyAnswer"),
        example: { code: 1, description: "ok", result: "1712" },
      },
    },
  }),
  "POST /mj/insight-face/swap": drawing({
    summary: "Put the face of one picture on another",
    body: {
      schema: open({ sourceBase64: text("A data: URL."), targetBase64: text("A data: URL.") }),
      example: { sourceBase64: "data:image/png;base64,iVBO", targetBase64: "data:image/png;base64,iVBO" },
    },
    answer: { [JSON_TYPE]: { schema: ref("MidjourneyAnswer") } },
  }),
  "POST /mj/notify": drawing({
    summary: "How far a task is, pushed by its upstream",
    body: { schema: ref("MidjourneyPush"), example: { id: "1712", status: "IN_PROGRESS", progress: "40%" } },
    answer: {},
    answerDescription: "Taken.",
  }),
  "GET /mj/task/{id}/fetch": drawing({
    summary: "Show a task",
    parameters: [taskId],
    answer: { [JSON_TYPE]: { schema: ref("MidjourneyTask") } },
  }),
  "GET /mj/task/{id}/image-seed": drawing({
    summary: "The seed of a picture, asked of its upstream",
    parameters: [taskId],
    answer: { [JSON_TYPE]: { schema: ref("MidjourneyAnswer") } },
  }),
  "POST /mj/task/list-by-condition": drawing({
    summary: "Show several tasks",
    body: { schema: ref("TaskIds"), example: { ids: ["1712"] } },
    answer: { [JSON_TYPE]: { schema: list(ref("MidjourneyTask")) } },
  }),
};

const mode: Parameter = {
  name: "mode",
  in: "path",
  required: true,
  description: "A mode of speed, such as `mj-fast`, `mj-relax` or `mj-turbo`.",
  schema: { type: "string" },
};

function drawingCalls(): Record<string, RelayOperation> {
  const rows: Record<string, RelayOperation> = { ...DRAWING_CALLS };
  for (const [name, row] of Object.entries(DRAWING_CALLS))
    rows[name.replace("/mj/", "/{mode}/mj/")] = {
      ...row,
      summary: `${row.summary}, in a mode of speed`,
      parameters: [mode, ...(row.parameters ?? [])],
    };
  return rows;
}

export const tasks: RelayArea = {
  schemas: {
    TaskIds: open({ ids: list(text()) }),
    MidjourneySubmission: open(
      {
        "prompt?": text("imagine, shorten, modal"),
        "taskId?": text("change, action, modal: the task that is followed up"),
        "action?": text("change: UPSCALE, VARIATION, REROLL, …"),
        "index?": integer("change: which of the four pictures"),
        "content?": text("simple-change: the task's id, a blank, and U1 to U4, V1 to V4 or R"),
        "customId?": text("action: the id of the button"),
        "base64?": text("describe: a data: URL"),
        "base64Array?": list(text(), "blend, upload-discord-images: data: URLs"),
        "notifyHook?": text("Where the upstream is to push to, where the site allows it"),
        "state?": text("Comes back with the task"),
      },
      "Which fields are needed depends on the kind.",
    ),
    MidjourneyAnswer: open({
      code: integer("1: submitted."),
      description: text(),
      "result?": anything("Id of the task."),
      "properties?": anything(),
    }),
    MidjourneyPush: open({ id: text(), "status?": text(), "progress?": text(), "imageUrl?": text() }),
    MidjourneyTask: exact({
      id: text(),
      action: text("IMAGINE, UPSCALE, …"),
      customId: text(),
      botType: text(),
      prompt: text(),
      promptEn: text(),
      description: text(),
      state: text(),
      submitTime: integer("Unix milliseconds, as all times here; 0 = not yet."),
      startTime: integer(),
      finishTime: integer(),
      imageUrl: text(),
      status: text("NOT_START, SUBMITTED, IN_PROGRESS, SUCCESS or FAILURE."),
      progress: text("`100%` when it has ended."),
      failReason: text(),
      buttons: anything("What may follow."),
      maskBase64: text(),
      properties: anything(),
    }),
    SunoSubmission: open({
      "prompt?": text("The words, or for lyrics what they are about."),
      "gpt_description_prompt?": text("What the song is about."),
      "mv?": text("Version of the model."),
      "title?": text(),
      "tags?": text("Style."),
      "make_instrumental?": flag(),
      "continue_clip_id?": text(),
      "continue_at?": number("Seconds."),
      "task_id?": text("Of the song that is continued."),
    }),
    SunoTask: exact({
      task_id: text(),
      action: text("MUSIC or LYRICS."),
      status: text(),
      fail_reason: text(),
      submit_time: integer("Unix seconds, as all times here; 0 = not yet."),
      start_time: integer(),
      finish_time: integer(),
      progress: text(),
      data: anything("The upstream's own."),
    }),
  },
  operations: {
    ...drawingCalls(),
    "POST /suno/submit/{action}": {
      tag: "Suno",
      summary: "Submit a song or lyrics",
      parameters: [
        {
          name: "action",
          in: "path",
          required: true,
          description: "What is to be made.",
          schema: oneOf(["music", "lyrics"]),
        },
      ],
      body: {
        schema: ref("SunoSubmission"),
        example: { prompt: "A quiet song about a river", tags: "folk" },
      },
      answer: {
        [JSON_TYPE]: {
          schema: open({ code: word("success"), "message?": text(), data: text("Id of the task.") }),
          example: { code: "success", message: "", data: "4711" },
        },
      },
      errors: "suno",
    },
    "POST /suno/fetch": {
      tag: "Suno",
      summary: "Show several tasks",
      body: { schema: open({ ids: list(text()), "action?": text() }), example: { ids: ["4711"] } },
      answer: {
        [JSON_TYPE]: {
          schema: exact({
            code: word("success"),
            message: text(),
            data: either(list(ref("SunoTask")), { type: "null" }),
          }),
        },
      },
      errors: "suno",
    },
    "GET /suno/fetch/{id}": {
      tag: "Suno",
      summary: "Show a task",
      parameters: [taskId],
      answer: {
        [JSON_TYPE]: { schema: exact({ code: word("success"), message: text(), data: ref("SunoTask") }) },
      },
      errors: "suno",
    },
  },
};
