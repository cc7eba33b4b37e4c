// The console's calls about the site: status, setup, options, catalogue and codes.
import type { ConsoleOperation } from "../schema.ts";

export const site: Readonly<Record<string, ConsoleOperation>> = {
  "GET /api/setup": {
    tag: "Site",
    summary: "Whether the site has been set up",
    description: "Once it has, the other fields say nothing.",
  },
  "POST /api/setup": {
    tag: "Site",
    summary: "Set the site up",
    description:
      "Makes the root account; once. The site counts its days in `time_zone` from then on, in UTC without it.",
    body: {
      username: "root",
      password: "correct horse",
      confirmPassword: "correct horse",
      time_zone: "Europe/Berlin",
    },
  },
  "POST /api/setup/import": {
    tag: "Site",
    summary: "Move a site of one-api or new-api in",
    description:
      "In place of the setup, before there is any account: `source` is a SQLite file on the server, a Go DSN of MySQL, or `postgres://…`. It runs as a job; the site stands in maintenance mode afterwards.",
    body: { source: "/data/one-api.db" },
  },
  "GET /api/setup/import": {
    tag: "Site",
    summary: "How far the import has come",
    description: "`report` comes once it is done; the server begins anew a moment later.",
  },
  "DELETE /api/maintenance": {
    tag: "Site",
    summary: "End maintenance mode",
    description: "Opens the site to everybody. What an imported site held back goes out from then on.",
  },
  "GET /api/status": { tag: "Site", summary: "What every visitor's console needs to know" },
  "GET /api/status/test": { tag: "Site", summary: "Whether the database answers" },
  "GET /api/notice": { tag: "Site", summary: "The notice" },
  "GET /api/about": { tag: "Site", summary: "The page about the site" },
  "GET /api/home_page_content": { tag: "Site", summary: "The home page, or the address of one" },
  "GET /api/option/": {
    tag: "Site",
    summary: "List the options",
    description: "Secrets are not shown; `secrets_set` names those that are set.",
  },
  "GET /api/option/rows": {
    tag: "Site",
    summary: "What the settings screens draw",
    description:
      "Kind, default and bounds of each option. Texts above 2,000 characters come with `full` only.",
  },
  "PUT /api/option/": {
    tag: "Site",
    summary: "Set an option",
    body: { key: "SystemName", value: "Weir" },
  },
  "GET /api/inbox/": {
    tag: "Site",
    summary: "List what needs a person",
    description: "Times in Unix seconds, 0 = never. Items close themselves when their cause is gone.",
    fields: {
      state: "`open` where absent, `snoozed` or `closed`.",
      kind: "Only items of this kind.",
      p: "Page; the first is 1.",
    },
  },
  "PUT /api/inbox/{id}": {
    tag: "Site",
    summary: "Close an item, or put it off",
    description:
      "`snoozed` for so many `hours`, 24 where absent; `open` ends that. What lasts closes itself and cannot be closed by hand; what tells root of an administrator (`balance`, `balance_run`, `codes`, `plan_by_hand`) is root's to change.",
    body: { state: "snoozed", hours: 24 },
  },
  "GET /api/model_notice/": {
    tag: "Site",
    summary: "List the notices about models and channels",
    description: "Ended ones too, for thirty days.",
  },
  "POST /api/model_notice/": {
    tag: "Site",
    summary: "Tell users about models or channels",
    body: { models: ["gpt-4o"], channels: [], text: "Slow today", until: 1800000000 },
  },
  "PUT /api/model_notice/{id}": {
    tag: "Site",
    summary: "Change a notice",
    body: { models: ["gpt-4o"], channels: [1], text: "Slow until Friday", until: 1800000000 },
  },
  "DELETE /api/model_notice/{id}": { tag: "Site", summary: "Take a notice back" },
  "POST /api/option/letter": {
    tag: "Site",
    summary: "Send a test letter",
    description:
      "By the saved mail server, to the address or root's own. A refusal says what the server answered.",
    body: { to: "me@example.org" },
    answer: { success: true, message: "", data: { address: "me@example.org" } },
  },
  "GET /api/custom-oauth-provider/": {
    tag: "Site",
    summary: "List the sign-in providers that root has defined",
    description: "Secrets are never answered, only whether one is set.",
  },
  "POST /api/custom-oauth-provider/": {
    tag: "Site",
    summary: "Add a sign-in provider",
    description: "The issuer of an OIDC provider is discovered, and kept as it names itself.",
    body: {
      name: "Work",
      slug: "work-sso",
      kind: "oidc",
      enabled: true,
      client_id: "weir",
      client_secret: "…",
      issuer: "https://id.example.org",
    },
  },
  "POST /api/custom-oauth-provider/discovery": {
    tag: "Site",
    summary: "Ask an identity server for its addresses",
    description: "Nothing is saved.",
    body: { issuer: "https://id.example.org" },
  },
  "GET /api/custom-oauth-provider/{id}": { tag: "Site", summary: "Show a sign-in provider" },
  "PUT /api/custom-oauth-provider/{id}": {
    tag: "Site",
    summary: "Change a sign-in provider",
    description:
      "What is absent stays; an empty secret keeps the one that is set. The slug, which is its id, never changes.",
    body: { enabled: false },
  },
  "DELETE /api/custom-oauth-provider/{id}": {
    tag: "Site",
    summary: "Delete a sign-in provider",
    description: "With what accounts are bound by it; answers how many those were.",
    answer: { success: true, message: "", data: { identities: 3 } },
  },
  "GET /api/option/ways_in": {
    tag: "Site",
    summary: "Ask who could not sign in any more",
    description:
      "What would go with an option's new text: accounts that have no other way in, and passkeys of another host. Nothing is " +
      "saved; refused with `last_method` where root would be locked out.",
    fields: { key: "Name of an option.", value: "What it would be set to." },
    answer: {
      success: true,
      message: "",
      data: { accounts_without_sign_in: 3, passkeys_orphaned: 0 },
    },
  },
  "GET /api/custom-oauth-provider/{id}/ways_in": {
    tag: "Site",
    summary: "Ask who could not sign in without a provider",
    description: "As before switching it off or deleting it; nothing is saved.",
    answer: {
      success: true,
      message: "",
      data: { accounts_without_sign_in: 3, passkeys_orphaned: 0 },
    },
  },
  "GET /api/option/version": {
    tag: "Site",
    summary: "See whether a newer release is known",
    description: "Answers at once; what is older than twelve hours is asked for anew meanwhile.",
  },
  "POST /api/option/version": { tag: "Site", summary: "Ask for the newest release now" },
  "POST /api/option/preview": {
    tag: "Site",
    summary: "See what pages would show of a text",
    description:
      "Nothing is saved. `removed` tells what is cut out: tags, attributes, and values that are not taken.",
    body: { key: "Footer", value: "<p>Weir</p>" },
  },
  "GET /api/option/channel_affinity_cache": {
    tag: "Site",
    summary: "Sessions that are bound to a channel and key",
    description:
      "How many, and by rule: of all nodes where they share them through Valkey (`is_shared`), else of the node that answers.",
  },
  "DELETE /api/option/channel_affinity_cache": {
    tag: "Site",
    summary: "Forget bindings of sessions",
    description:
      "On all nodes where they share them through Valkey (`is_shared`), else on the node that answers. Their next calls may be " +
      "served by any channel; stored responses stay where they are.",
    fields: { all: "true: of every rule.", rule_name: "Of this rule only." },
  },
  "POST /api/option/rest_model_ratio": { tag: "Site", summary: "Set the model ratios back" },
  "GET /api/models": { tag: "Catalogue", summary: "Models that each type of channel presets" },
  "GET /api/pricing": {
    tag: "Catalogue",
    summary: "Prices of the models",
    description:
      "Every model that an enabled channel serves. `lines` are the unit prices where the group's ratio is 1: multiply by the " +
      "ratio in `group_ratio`. A model without a price has `is_priced` false and the stand-in ratio that old clients expect; " +
      "ratios of a model that is charged per call are null.",
  },
  "GET /api/ratio_config": {
    tag: "Catalogue",
    summary: "Ratios of the models, for other instances",
    description: "403 unless the operator lets others read them (option ExposeRatioEnabled).",
  },
  "GET /api/group/": { tag: "Catalogue", summary: "Names of the groups" },
  "GET /api/user/models/notices": {
    tag: "Catalogue",
    summary: "What administrators tell about the caller's models at the moment",
    description: "`until` in Unix seconds; 0: until it is taken back.",
  },
  "GET /api/user/models": {
    tag: "Catalogue",
    summary: "Models that the user may use",
    fields: { group: "One of the user's groups; all of them where absent." },
  },
  "GET /api/user/models/unpriced": {
    tag: "Catalogue",
    summary: "Models of the user that are refused because they have no price",
  },
  "GET /api/user/models/priced": {
    tag: "Catalogue",
    summary: "Models that the user may use, with their prices",
    description:
      "Each is a name and its price where the group's ratio is 1: units per prompt token and per completion token, or " +
      "dollars per call alone, or nothing where no price is set.",
    fields: { group: "One of the user's groups; all of them where absent." },
  },
  "GET /api/user/self/groups": { tag: "Catalogue", summary: "Groups that the user may choose" },
  "GET /api/user/groups": { tag: "Catalogue", summary: "Groups that a visitor may choose" },
  "GET /api/redemption/": { tag: "Codes", summary: "List codes", fields: { p: "Page; the first is 1." } },
  "GET /api/redemption/search": {
    tag: "Codes",
    summary: "Search codes",
    fields: { p: "Page; the first is 1.", keyword: "Id, or the beginning of a name." },
  },
  "GET /api/redemption/{id}": { tag: "Codes", summary: "Show a code" },
  "POST /api/redemption/": {
    tag: "Codes",
    summary: "Make codes",
    description:
      "Answers them. From `expired_time` on (Unix seconds, 0 = never) nobody redeems them. What they are worth together counts against `AdminBalanceDailyCeiling`, and root is told.",
    body: { name: "spring", quota: 500_000, count: 2, expired_time: 0 },
  },
  "POST /api/redemption/batch": {
    tag: "Codes",
    summary: "Change many codes",
    description: "Answers how many it changed.",
    body: { ids: [1, 2], action: "disable" },
  },
  "PUT /api/redemption/": {
    tag: "Codes",
    summary: "Change a code, or switch it on and off",
    description: "What a raised `quota` gains counts against `AdminBalanceDailyCeiling`, and root is told.",
    body: { id: 1, name: "spring", quota: 500_000 },
    fields: { status_only: "Not empty: only the status is changed." },
  },
  "DELETE /api/redemption/{id}": { tag: "Codes", summary: "Delete a code" },
};
