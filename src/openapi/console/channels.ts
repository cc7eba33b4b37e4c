// The console's calls about upstream channels: lists, one of them, many at once, and what is asked of their providers.
import type { ConsoleOperation } from "../schema.ts";

const FIRST_PAGE = { p: "Page; the first is 0." };

const channel = (
  summary: string,
  more: Omit<ConsoleOperation, "tag" | "summary"> = {},
): ConsoleOperation => ({ tag: "Channels", summary, ...more });

export const channels: Readonly<Record<string, ConsoleOperation>> = {
  "GET /api/channel/": channel("List channels", {
    description: "Keys are never answered.",
    fields: FIRST_PAGE,
  }),
  "GET /api/channel/search": channel("Search channels", {
    description: "Every match, up to 1000, where no page is asked for.",
    fields: { ...FIRST_PAGE, keyword: "Id, key, or a piece of name or address." },
  }),
  "GET /api/channel/models": channel("Every model that is known"),
  "GET /api/channel/models_enabled": channel("Models that enabled channels serve"),
  "GET /api/channel/models_priced": channel("Models that have a price", {
    description: "With whether calls to others are refused, and who may set prices.",
  }),
  "GET /api/channel/summary": channel("Counts of the views, and the tags in use"),
  "GET /api/channel/{id}": channel("Show a channel"),
  "POST /api/channel/": channel("Make channels", {
    description: "One for each line of the key. Answers their ids.",
    body: { type: 1, name: "OpenAI", key: "sk-…", models: "gpt-4o,gpt-4o-mini", group: "default" },
  }),
  "PUT /api/channel/": channel("Change a channel", {
    description:
      "Fields that are absent stay as they are. In `setting`, `http_protocol` and `http2_connection_shards` are taken and kept for other gateways; every upstream is asked by HTTP/1.1.",
    body: { id: 1, name: "OpenAI", priority: 10 },
  }),
  "POST /api/channel/try_rules": channel("Try a channel's rules on a request", {
    description:
      "Shows what would be sent and which rules acted; nothing is saved, sent or charged. `id`: the channel whose other fields count; `refused`: what the client would read.",
    body: {
      id: 1,
      param_override: '{"operations":[{"mode":"set","path":"temperature","value":0}]}',
      request: { path: "/v1/chat/completions", body: '{"model":"gpt-4o","messages":[]}' },
    },
  }),
  "DELETE /api/channel/{id}": channel("Delete a channel"),
  "POST /api/channel/batch": channel("Delete channels", { body: { ids: [1, 2] } }),
  "POST /api/channel/batch/tag": channel("Tag channels", { body: { ids: [1, 2], tag: "europe" } }),
  "PUT /api/channel/tag": channel("Change the channels of a tag", { body: { tag: "europe", priority: 10 } }),
  "POST /api/channel/tag/enabled": channel("Enable the channels of a tag", { body: { tag: "europe" } }),
  "POST /api/channel/tag/disabled": channel("Disable the channels of a tag", { body: { tag: "europe" } }),
  "DELETE /api/channel/disabled": channel("Delete every disabled channel"),
  "POST /api/channel/fix": channel("Make the index of models anew"),
  "GET /api/channel/test/{id}": channel("Test a channel by a small call", {
    description: "A failure is success false with the provider's words; `time` is in seconds.",
    fields: {
      model: "The model to ask for; the channel's own choice where absent.",
      bulk: "`true`: one of several. A channel that cannot be tested is left out: `skipped` is true, the message says why.",
    },
  }),
  "GET /api/channel/test": channel("Begin to test every channel", {
    description:
      "Left out are channels that are switched off by hand, of types or with models that have no test, and without models.",
  }),
  "GET /api/channel/test_progress": channel("How far the test of every channel is", {
    description:
      "`skipped` counts what was left out, beside the total; `skips` names the first fifty with the reason.",
  }),
  "POST /api/channel/test_cancel": channel("End the test of every channel", {
    description: "Tests under way are finished, nothing more is begun.",
  }),
  "GET /api/channel/balance_progress": channel("How far the reading of balances is"),
  "POST /api/channel/balance_cancel": channel("End the reading of balances"),
  "GET /api/channel/update_balance/{id}": channel("Ask a provider for the balance"),
  "GET /api/channel/update_balance": channel("Ask every provider for its balance"),
  "GET /api/channel/fetch_models/{id}": channel("Ask a provider for its models"),
  "POST /api/channel/fetch_models": channel("Ask a provider that is not yet a channel for its models", {
    body: { type: 1, base_url: "https://api.example.org", key: "sk-…" },
  }),
  "POST /api/channel/copy/{id}": channel("Copy a channel with its key"),
  "GET /api/channel/keys/{id}": channel("The keys of a channel", {
    description: "State, reason, since when, caps, use and rests of each; never the keys.",
  }),
  "POST /api/channel/upstream_updates/detect": channel(
    "Compare a channel's models with its upstream's list",
    {
      description:
        "Asks the upstream at most every five minutes, and changes nothing but what is proposed: models to add, and models that were missing twice, an hour apart. A list that is empty or has shrunk by half is not believed.",
      body: { id: 1 },
    },
  ),
  "POST /api/channel/upstream_updates/detect_all": channel("The same for every channel that is watched"),
  "POST /api/channel/upstream_updates/apply": channel("Take over, or never propose again", {
    body: { id: 1, add_models: ["gpt-5.4"], remove_models: [], ignore_models: [] },
  }),
  "POST /api/channel/upstream_updates/apply_all": channel("Take over all that is proposed and has a price"),
  "POST /api/channel/upstream_updates/undo": channel("Take back the last change of this kind", {
    body: { id: 1 },
  }),
  "POST /api/channel/route": channel("Which channel and key would serve a call now", {
    description:
      "Every channel that lists the model: those that would be asked in their order with the key of each, the others with what keeps them out. Chosen by the code that chooses for calls; nobody is asked. `session` is the name that a client gives its session, or the fingerprint (`key_fp`) that log rows tell of it: where it is bound on this node its next call goes first.",
    body: {
      user_id: 1,
      model: "gpt-4o-mini",
      path: "/v1/chat/completions",
      tokens: 1000,
      session: "0a1b2c3d",
    },
  }),
  "GET /api/channel/cells/{id}": channel("The health of a channel", {
    description:
      "Each model of it that had trouble lately (of this node): closed, open until when and why, or half-open, and how its last twenty calls ended; also a key with which a model fails, and the proxy.",
  }),
  "POST /api/channel/cells/{id}/close": channel("Let calls through again", {
    description:
      "Ends the rest of one model (by its name at the upstream), of one key, or, where neither is named, of the whole channel and its proxy.",
    body: { model: "gpt-4o-mini" },
  }),
  "POST /api/channel/multi_key/manage": channel("Manage the keys of a channel", {
    description:
      "One of the actions, for the key with `key_id` or at `key_index`; answers the keys as they are afterwards, in pages, with what a test found.",
    body: { channel_id: 1, action: "disable_key", key_index: 0 },
  }),
};
