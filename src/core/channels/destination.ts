// Where a channel's key goes when it is used, and when it may go elsewhere: keys are write-only, also by way of an address.
// Refuses a changed origin or proxy without the key, unless root asks: whoever runs the server can read it anyway.
import { jsonObject } from "../../shared/json-object.ts";
import { Failure } from "../../shared/failures.ts";
import { providerForm } from "../../shared/provider-forms.ts";
import type { ChannelRow } from "./rows.ts";
import type { Sealer } from "../kit/seal.ts";

type Destination = Pick<ChannelRow, "type" | "baseUrl" | "setting">;

/** The channel's own origin, else its type's; a type that makes its address itself is a place of its own. */
function originOf({ type, baseUrl }: Destination): string {
  const address = baseUrl.trim() || (providerForm(type)?.baseUrl ?? "");
  if (address === "") return `type ${type}`;
  return URL.canParse(address) ? new URL(address).origin : address;
}

function proxyOf({ setting }: Destination): string {
  const proxy = jsonObject(setting)?.["proxy"];
  return typeof proxy === "string" ? proxy.trim() : "";
}

/** Whether there is a key to protect: one that cannot be opened goes nowhere. */
function hasKey(seal: Sealer, row: Pick<ChannelRow, "keySealed">): boolean {
  try {
    return seal.open("channel", row.keySealed).trim() !== "";
  } catch {
    return false;
  }
}

/** Call before a change without a new key is written. */
export function checkDestination(seal: Sealer, before: ChannelRow, changes: Partial<ChannelRow>): void {
  const after = { ...before, ...changes };
  if (originOf(before) === originOf(after) && proxyOf(before) === proxyOf(after)) return;
  if (hasKey(seal, before)) throw new Failure("client", "channel_key_again", { param: "key" });
}
