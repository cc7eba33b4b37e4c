// The origin that a channel's keys go to: its own address, else its type's.
// Knows nothing of keys: a row's type and address are all that it reads.
import { providerForm } from "../../shared/provider-forms.ts";

/** A type that makes its address itself is a place of its own. */
export function originOf({ type, baseUrl }: { type: number; baseUrl: string }): string {
  const address = baseUrl.trim() || (providerForm(type)?.baseUrl ?? "");
  if (address === "") return `type ${type}`;
  return URL.canParse(address) ? new URL(address).origin : address;
}
