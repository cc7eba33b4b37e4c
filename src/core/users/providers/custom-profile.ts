// What a provider of the operator's says of a person, read by the paths of its row, and whether its policy lets them in.
import { parsePolicyText, refusalText, refusedBy } from "../../../shared/access-policy.ts";
import { subjectAt, textAt, valueAt } from "../../../shared/field-paths.ts";
import type { CustomProviderRow } from "./custom-rows.ts";
import type { Profile } from "./types.ts";

type PathRow = Pick<
  CustomProviderRow,
  "userIdField" | "usernameField" | "displayNameField" | "emailField" | "emailVerifiedField"
>;

/** Whom the claims speak of; undefined where there is no lasting id at the row's path. */
export function customProfile(row: PathRow, claims: Record<string, unknown>): Profile | undefined {
  const subject = subjectAt(claims, row.userIdField);
  if (subject === undefined) return undefined;
  const login = textAt(claims, row.usernameField);
  const name = textAt(claims, row.displayNameField);
  const email = textAt(claims, row.emailField);
  return {
    subject,
    // A text such as "true" proves nothing: who sends that may send "false" as well.
    emailVerified: valueAt(claims, row.emailVerifiedField) === true,
    claims,
    ...(login === undefined ? {} : { login }),
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
  };
}

/**
 * Undefined: may come in. Otherwise the operator's words, or the empty text where they wrote none. A policy that cannot be
 * read lets nobody in.
 */
export function deniedText(
  row: Pick<CustomProviderRow, "name" | "accessPolicy" | "accessDeniedMessage">,
  claims: Record<string, unknown>,
): string | undefined {
  const parsed = parsePolicyText(row.accessPolicy);
  if ("problem" in parsed) return "";
  const refusal = refusedBy(parsed.policy, claims);
  if (!refusal) return undefined;
  return refusalText(row.accessDeniedMessage, { provider: row.name, refusal, claims });
}
