// Which options ask for a fresh proof: every option of every way to sign in, and the others that hand the site over.
import { expect, test } from "bun:test";
import { optionRows } from "../../../src/core/options/definitions.ts";
import { isSensitive } from "../../../src/core/options/sensitive.ts";
import { PROVIDER_SWITCHES } from "../../../src/shared/ways-in.ts";

test("each option of a provider that people sign in by asks, its switch too", () => {
  const providers = new Set<string>(Object.values(PROVIDER_SWITCHES));
  const ofProviders = optionRows.filter(({ key, group }) => providers.has(group) || key in PROVIDER_SWITCHES);
  // A provider without a group of its own would pass unseen.
  expect([...new Set<string>(ofProviders.map(({ group }) => group))].toSorted()).toEqual(
    [...providers].toSorted(),
  );
  expect(ofProviders.filter(({ key }) => !isSensitive(key)).map(({ key }) => key)).toEqual([]);
});

test.each(["WorkerUrl", "Price", "TopupGroupRatio", "SMTPServer", "PasswordLoginEnabled", "ServerAddress"])(
  "%s asks",
  (key) => expect(isSensitive(key)).toBe(true),
);

test.each(["Notice", "ModelRatio", "SystemName", "no_such_option"])("%s does not", (key) =>
  expect(isSensitive(key)).toBe(false),
);
