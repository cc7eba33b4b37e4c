// The rules that this family ships are taken as they are, so that settings carry over.
import { expect, test } from "bun:test";
import { affinityRules } from "../../../src/core/options/affinity-kind.ts";

/** As the family's settings have them by default. */
const SHIPPED = [
  {
    name: "codex cli trace",
    model_regex: ["^gpt-.*$"],
    path_regex: ["/v1/responses"],
    key_sources: [{ type: "gjson", path: "prompt_cache_key" }],
    value_regex: "",
    ttl_seconds: 0,
    param_override_template: {
      operations: [
        {
          mode: "pass_headers",
          value: ["Originator", "Session_id", "User-Agent", "X-Codex-Beta-Features", "X-Codex-Turn-Metadata"],
          keep_origin: true,
        },
      ],
    },
    skip_retry_on_failure: true,
    include_using_group: true,
    include_rule_name: true,
    user_agent_include: null,
  },
  {
    name: "claude cli trace",
    model_regex: ["^claude-.*$"],
    path_regex: ["/v1/messages"],
    key_sources: [{ type: "gjson", path: "metadata.user_id" }],
    ttl_seconds: 0,
    include_using_group: true,
    include_model_name: false,
    include_rule_name: true,
  },
];

test("the family's own rules are taken, with every member", () => {
  const text = JSON.stringify(SHIPPED);
  affinityRules.check?.(text);
  const [codex, claude] = affinityRules.parse(text);
  expect(codex).toMatchObject({
    name: "codex cli trace",
    skip_retry_on_failure: true,
    include_model_name: true,
  });
  expect(codex?.key_sources).toEqual([{ type: "gjson", key: "", path: "prompt_cache_key" }]);
  expect(claude).toMatchObject({
    include_model_name: false,
    user_agent_include: [],
    skip_retry_on_failure: false,
  });
});
