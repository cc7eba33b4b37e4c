// Making and changing API keys on the server, from the drawer's values.
import { ApiFailure, api, call } from "../../lib/api.ts";
import { LIMIT_NAMES } from "../../lib/limit-values.ts";
import { toastFailure } from "../../lib/toasts.ts";
import type { TokenRow } from "../../lib/wire.ts";
import { batchName, bodyOf } from "./row.ts";
import type { TokenValues } from "./row.ts";

type TokenBody = ReturnType<typeof bodyOf>;

/** Names of the body's fields by those of the form. */
const FIELD_OF = {
  name: "name",
  unlimited: "unlimited_quota",
  quota: "remain_quota",
  expires: "expired_time",
  group: "group",
  autoGroups: "auto_groups",
  limitModels: "model_limits_enabled",
  models: "model_limits",
  ips: "allow_ips",
  maxQuota: "max_quota",
  ...LIMIT_NAMES,
} as const satisfies Record<string, keyof TokenBody>;

/** A refused field of the body belongs to the form's field of another name. */
async function atField<T>(running: Promise<T>): Promise<T> {
  try {
    return await running;
  } catch (error) {
    const field = error instanceof ApiFailure ? error.field : undefined;
    const own = Object.entries(FIELD_OF).find(([, wire]) => wire === field)?.[0];
    if (!(error instanceof ApiFailure) || own === undefined) throw error;
    throw new ApiFailure(
      error.code,
      error.status,
      error.message,
      own,
      error.retryAfterSeconds,
      error.requestId,
    );
  }
}

function pickChanged(body: TokenBody, changed: Partial<TokenValues>): Partial<TokenBody> {
  const names = Object.keys(changed).flatMap((name) => FIELD_OF[name as keyof typeof FIELD_OF] ?? []);
  return Object.fromEntries(names.map((name) => [name, body[name]]));
}

/** Only what was changed: calls have gone on spending since the row was loaded. */
export async function update(
  row: TokenRow,
  values: TokenValues,
  changed: Partial<TokenValues>,
): Promise<void> {
  await atField(call(api.token.put({ id: row.id, ...pickChanged(bodyOf(values), changed) })));
}

/** Makes as many keys as the form says; answers those that exist, also when it failed midway. */
export async function create(values: TokenValues): Promise<TokenRow[]> {
  const body = bodyOf(values);
  const created: TokenRow[] = [];
  try {
    for (let index = 0; index < (values.count ?? 1); index++) {
      const made = call(api.token.post({ ...body, name: batchName(body.name, index) }));
      created.push(await atField(made));
    }
  } catch (error) {
    if (created.length === 0) throw error;
    // Some exist already: they are shown, and the form is not offered once more for the same batch.
    toastFailure(error);
  }
  return created;
}
