// The console's calls about settings as a document, which `weir export`, `weir plan` and `weir apply` make.
import type { ConsoleOperation } from "../schema.ts";

const document = {
  format: 1,
  prices: { "gpt-4o": { in: 2.5, out: 10 } },
  channels: { main: { type: 1, models: ["gpt-4o"], key: "${OPENAI_KEY}" } },
};
const variables = { OPENAI_KEY: "sk-example" };

export const config: Readonly<Record<string, ConsoleOperation>> = {
  "GET /api/config": {
    tag: "Site",
    summary: "The settings as a document",
    description:
      "Prices in dollars, groups, options that are not as shipped, channels by name. Nothing secret: `secrets` names the secret " +
      "options that are set; `unnamed` are channels that share a name, which no document can speak of.",
  },
  "POST /api/config/plan": {
    tag: "Site",
    summary: "What applying a document would change",
    description:
      "Changes nothing. `status` is `nothing`, `differences`, `guarded` (a person must accept `guards`) or `invalid` (`problems`, " +
      "each with its path in the document). `variables` are what `${NAME}` of keys and secrets stands for.",
    body: { document, variables },
  },
  "POST /api/config/apply": {
    tag: "Site",
    summary: "Apply a document",
    description:
      "All of it or nothing, prices as one revision. `status` is `applied` or `nothing`; nothing was changed where it is " +
      "`invalid`, `guarded`, `mismatch` (`plan_hash` is of another plan) or `moved` (settings changed meanwhile).",
    body: { document, variables, plan_hash: "0".repeat(64), note: "New list prices" },
  },
};
