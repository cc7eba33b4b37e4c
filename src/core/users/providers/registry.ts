// The one list of sign-in providers: the rows that ship with the product, then those that the operator defined.
import { Failure } from "../../../shared/failures.ts";
import { builtInProviders } from "./built-in.ts";
import type { BuiltInDeps } from "./built-in.ts";
import { loadCustomProviders } from "./custom.ts";
import type { CustomDeps } from "./custom.ts";
import type { IdentityProvider, RedirectingProvider } from "./types.ts";

export type RegistryDeps = BuiltInDeps & CustomDeps;

/** All, in display order, also those that are off. */
export async function allProviders(deps: RegistryDeps): Promise<IdentityProvider[]> {
  return [...builtInProviders(deps), ...(await loadCustomProviders(deps))];
}

/** Those by which somebody can come in now. */
export async function enabledProviders(deps: RegistryDeps): Promise<IdentityProvider[]> {
  return (await allProviders(deps)).filter(({ enabled }) => enabled);
}

/** The provider, if it is on. Throws a Failure `oauth_off` that names it. */
export async function enabledProvider(deps: RegistryDeps, id: string): Promise<IdentityProvider> {
  const found = (await allProviders(deps)).find((each) => each.id === id);
  if (!found?.enabled)
    throw new Failure("client", "oauth_off", { params: { provider: found?.label ?? id.slice(0, 32) } });
  return found;
}

export function isRedirecting(provider: IdentityProvider): provider is RedirectingProvider {
  return provider.kind === "oidc" || provider.kind === "oauth2";
}

/** What a browser may know of a provider. */
export interface ShownProvider {
  id: string;
  label: string;
  icon: string;
  kind: IdentityProvider["kind"];
}

export function shown({ id, label, icon, kind }: IdentityProvider): ShownProvider {
  return { id, label, icon, kind };
}
