// Query strings of lists: the fields that a list knows, as controllers validate them and pages read them from their address.
import { t } from "elysia";
import { plainText } from "../plain-text.ts";

/** A field that may be absent; a text, so that a wrong number never turns into an error page. */
export function queryText(maxLength: number) {
  return t.Optional(plainText(maxLength));
}

type QueryFields = Readonly<Record<string, ReturnType<typeof queryText>>>;

/** What was sent of a list's fields. */
export type Sent<Fields extends QueryFields> = { readonly [Name in keyof Fields]?: string | undefined };

/** A whole number from 1 up; everything else counts as not sent. */
export function positive(text: string | undefined): number | undefined {
  const value = /^\d{1,15}$/.test(text ?? "") ? Number(text) : 0;
  return value > 0 ? value : undefined;
}

/** What counts as yes in a query string: clients of this API write it in any of these ways. */
const YES: ReadonlySet<string> = new Set(["1", "t", "T", "true", "True", "TRUE"]);

/** A switch; everything else counts as not sent. */
export function isOn(text: string | undefined): boolean {
  return text !== undefined && YES.has(text);
}

/**
 * The fields in an address, the last where one is repeated, as the framework has it. What a controller would refuse counts as not sent: an
 * address always leads to a page.
 */
export function sentBy<Fields extends QueryFields>(fields: Fields, params: URLSearchParams): Sent<Fields> {
  const sent: Record<string, string> = {};
  for (const [name, { maxLength = 0 }] of Object.entries(fields)) {
    const text = params.getAll(name).at(-1);
    if (text !== undefined && text.length <= maxLength && !text.includes("\0")) sent[name] = text;
  }
  return sent as Sent<Fields>;
}

/** Without the fields that are undefined. */
export function present<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
