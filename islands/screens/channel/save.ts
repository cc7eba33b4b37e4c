// Making and changing channels on the server, from the editor's values; and the same call for a curl command.
// Refuses to name a key or a proxy's password in a command that is shown around.
import { api, ApiFailure, call } from "../../lib/api.ts";
import type { ChannelRow } from "../../lib/wire.ts";
import { bodyOf, changedBody, holdsMany, overNewer } from "./values.ts";
import type { ChannelValues } from "./values.ts";

/** The form's names of fields that the server calls otherwise. */
const FIELDS: Record<string, keyof ChannelValues & string> = {
  base_url: "baseUrl",
  openai_organization: "organization",
  group: "groups",
  test_model: "testModel",
  max_input_tokens: "maxInputTokens",
  multi_key_mode: "keyMode",
  max_concurrency: "maxConcurrency",
  rpm_limit: "rpmLimit",
  tpm_limit: "tpmLimit",
  model_mapping: "modelMapping",
  status_code_mapping: "statusCodeMapping",
  param_override: "paramOverride",
  header_override: "headerOverride",
  setting: "otherSettings",
};

/** A refused field of the body belongs to the form's field of another name. */
function atField(error: unknown): unknown {
  if (!(error instanceof ApiFailure) || error.field === undefined) return error;
  const field = error.code === "channel_proxy_invalid" ? "proxy" : (FIELDS[error.field] ?? error.field);
  return new ApiFailure(error.code, error.status, error.message, field, undefined, error.requestId);
}

/** Several keys make channels of their own, unless the form says that they are one's. */
function createChannel(values: ChannelValues, hasSeveral: boolean): Promise<readonly number[]> {
  const body = { key: "", ...bodyOf(values) };
  return call(
    api.channel.post(hasSeveral && values.keysTogether ? { ...body, mode: "multi_to_single" } : body),
  );
}

export interface ChannelSave {
  /** undefined: a new channel. */
  row: ChannelRow | undefined;
  initial: ChannelValues;
  values: ChannelValues;
  /** The key field holds several keys. */
  hasSeveralKeys: boolean;
}

/** Ids of what was saved. */
export async function saveChannel({
  row,
  initial,
  values,
  hasSeveralKeys,
}: ChannelSave): Promise<readonly number[]> {
  try {
    if (!row) return await createChannel(values, hasSeveralKeys);
    const changed = changedBody(initial, values);
    const body = holdsMany(changed)
      ? overNewer(changed, initial, await call(api.channel({ id: String(row.id) }).get()))
      : changed;
    return [(await call(api.channel.put({ id: row.id, ...body }))).id];
  } catch (error) {
    throw atField(error);
  }
}

/** For a command that is shown around: no key, and no name and password of a proxy. */
export function withoutSecrets<T extends { key?: string | undefined; setting?: string | undefined }>(
  body: T,
): T {
  return {
    ...body,
    ...(body.key === undefined ? {} : { key: "<key>" }),
    ...(body.setting === undefined ? {} : { setting: withoutPasswords(body.setting) }),
  };
}

/** Name and password end at the last "@" before the path: a password may hold one, and spaces. */
function withoutPasswords(setting: string): string {
  if (setting.trim() === "") return setting;
  const hidden = "$1<user>:<password>@";
  return JSON.stringify(JSON.parse(setting), (name, value: unknown) =>
    typeof value === "string"
      ? value.replace(name === "proxy" ? /(:\/\/)[^/?#]*@/ : /(:\/\/)[^/?#\s]*@/g, hidden)
      : value,
  );
}
