// The sign-in providers that the operator defined, as providers.
import { Failure } from "../../../shared/failures.ts";
import type { Deps } from "../../deps.ts";
import { customProfile, deniedText } from "./custom-profile.ts";
import { customProviderRows } from "./custom-rows.ts";
import { oauth2Acts } from "./oauth2.ts";
import { oidcActs } from "./oidc.ts";
import type { OidcDeps } from "./oidc.ts";
import type { IdentityProvider, Profile } from "./types.ts";

export type CustomDeps = OidcDeps & Pick<Deps, "db" | "seal" | "options">;

/** All of them, also those that are switched off. */
export async function loadCustomProviders(deps: CustomDeps): Promise<IdentityProvider[]> {
  const rows = await customProviderRows(deps);
  return rows.map((row): IdentityProvider => {
    const clientSecret = deps.seal.open("user", row.clientSecretSealed);
    const { clientId, name: label } = row;
    const read = (claims: Record<string, unknown>): Profile => {
      const profile = customProfile(row, claims);
      if (!profile) throw new Failure("client", "oauth_profile_empty", { params: { provider: label } });
      const denied = deniedText(row, claims);
      if (denied !== undefined)
        throw new Failure("forbidden", "oauth_access_denied", {
          status: 200,
          params: { provider: label },
          ...(denied === "" ? {} : { text: denied }),
        });
      return profile;
    };
    const common = { clientId, clientSecret, usesPkce: row.pkce !== "off" };
    const acts =
      row.kind === "oidc"
        ? oidcActs(deps, label, { ...common, issuer: row.issuer, scope: row.scopes }, read)
        : oauth2Acts(
            deps,
            label,
            {
              ...common,
              authorizeUrl: row.authorizationEndpoint,
              tokenUrl: row.tokenEndpoint,
              scope: row.scopes,
              authStyle: row.authStyle === 1 ? "body" : row.authStyle === 2 ? "basic" : "auto",
            },
            async (calls) => read(await calls.json(row.userInfoEndpoint)),
          );
    return {
      id: row.slug,
      label,
      icon: row.icon,
      kind: row.kind === "oidc" ? "oidc" : "oauth2",
      enabled: row.enabled && clientId !== "" && deps.options.get("ServerAddress") !== "",
      allowsRegister: row.allowRegister,
      skipsSecondFactor: row.skipSecondFactor,
      linksVerifiedMail: row.linkVerifiedEmail,
      ...acts,
    };
  });
}
