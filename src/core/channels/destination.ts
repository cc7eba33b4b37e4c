// Where a channel's key goes when it is used, and when it may go elsewhere: keys are write-only, also by way of an address.
// Refuses a changed origin or proxy without the key, unless root asks: whoever runs the server can read it anyway.
import { jsonObject } from "../../shared/json-object.ts";
import { Failure } from "../../shared/failures.ts";
import { originOf } from "./origin.ts";
import type { ChannelKeyRow, ChannelRow } from "./rows.ts";
import type { Sealer } from "../kit/seal.ts";

type Destination = Pick<ChannelRow, "setting">;

function proxyOf({ setting }: Destination): string {
  const proxy = jsonObject(setting)?.["proxy"];
  return typeof proxy === "string" ? proxy.trim() : "";
}

/** Whether there is a key to protect: one that cannot be opened goes nowhere. */
function hasKey(seal: Sealer, keys: readonly Pick<ChannelKeyRow, "keySealed">[]): boolean {
  return keys.some(({ keySealed }) => {
    try {
      return seal.open("channel", keySealed).trim() !== "";
    } catch {
      return false;
    }
  });
}

/** Call before a change that leaves one of the keys before is written. */
export function checkDestination(
  seal: Sealer,
  before: ChannelRow,
  keys: readonly Pick<ChannelKeyRow, "keySealed">[],
  changes: Partial<ChannelRow>,
): void {
  const after = { ...before, ...changes };
  if (originOf(before) === originOf(after) && proxyOf(before) === proxyOf(after)) return;
  if (hasKey(seal, keys)) throw new Failure("client", "channel_key_again", { param: "key" });
}
