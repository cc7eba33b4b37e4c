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
  "PUT /api/option/": {
    tag: "Site",
    summary: "Set an option",
    body: { key: "SystemName", value: "Weir" },
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
  "POST /api/option/rest_model_ratio": { tag: "Site", summary: "Set the model ratios back" },
  "GET /api/models": { tag: "Catalogue", summary: "Models that each type of channel presets" },
  "GET /api/pricing": {
    tag: "Catalogue",
    summary: "Prices of the models",
    description: "As the caller's group pays them; visitors see those of everybody.",
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
    description: "Answers them.",
    body: { name: "spring", quota: 500_000, count: 2 },
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
    body: { id: 1, name: "spring", quota: 500_000 },
    fields: { status_only: "Not empty: only the status is changed." },
  },
  "DELETE /api/redemption/{id}": { tag: "Codes", summary: "Delete a code" },
};
