// Site options for root: read all that is not secret, set one at a time, reset the model ratios.
// What is listed follows from the option rows: secrets go in and never come out.
import { Elysia, t } from "elysia";
import { optionDefinitions } from "../core/options/definitions.ts";
import type { Deps } from "../core/deps.ts";
import { done, ok } from "../http/envelope.ts";
import { messageText } from "../http/messages.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const optionBody = t.Object({
  key: t.String({ minLength: 1, maxLength: 128 }),
  // Older consoles send text only; a bare boolean or number means the same. Absent and null: what they have no text for.
  value: given(t.Union([plainText(4_000_000), t.Boolean(), t.Number()])),
});

export function options(deps: Deps, session: SessionSettings) {
  return new Elysia({ prefix: "/api/option" })
    .use(policy(session))
    .get("/", () => ({ ...ok(deps.options.entries()), secrets_set: deps.options.secretsSet() }), {
      access: "root",
    })
    .put(
      "/",
      async ({ body }) => {
        const { key, value } = body;
        await deps.options.change(key, value === undefined || value === null ? undefined : String(value));
        return done();
      },
      { access: "root", body: optionBody },
    )
    .post(
      "/rest_model_ratio",
      async ({ language }) => {
        await deps.options.set("ModelRatio", optionDefinitions.ModelRatio.default);
        return done(messageText("model_ratio_reset", language));
      },
      { access: "root" },
    );
}
