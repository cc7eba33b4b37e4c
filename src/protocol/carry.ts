// The rule for what one dialect says and another cannot: refused by name when it changes the request's meaning,
// listed as dropped when it does not. Refuses with a client failure that names the field.
import { Failure } from "../shared/failures.ts";
import type { CanonicalRequest, DialectName, JsonObject } from "./canonical.ts";

/** The refusal of a field that cannot be said in the upstream's protocol. */
export function cannotCarry(field: string): Failure {
  return new Failure("client", "unsupported_field", {
    params: { field },
    param: field,
    type: "invalid_request_error",
  });
}

/** The refusal of a field whose value has the wrong shape. */
export function invalidField(field: string): Failure {
  return new Failure("client", "invalid_field", {
    params: { field },
    param: field,
    type: "invalid_request_error",
  });
}

/**
 * Puts the request's extra fields into a body of their own dialect. Towards another dialect the fields in `mustCarry`
 * are refused by name and the others listed in `dropped`. `handled` names extras the encoder has translated itself.
 */
export function carryExtras(
  request: CanonicalRequest,
  target: DialectName,
  body: JsonObject,
  dropped: string[],
  handled: ReadonlySet<string> = new Set(),
): void {
  for (const dialect in request.extras) {
    const extras = request.extras[dialect as DialectName];
    if (!extras) continue;
    if (dialect === target) {
      for (const key in extras) if (!(key in body)) body[key] = extras[key];
      continue;
    }
    for (const key in extras) {
      if (handled.has(key)) continue;
      if (request.mustCarry.includes(key)) throw cannotCarry(key);
      dropped.push(key);
    }
  }
}

/** Lists a name once. */
export function drop(dropped: string[], name: string): void {
  if (!dropped.includes(name)) dropped.push(name);
}
