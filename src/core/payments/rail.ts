// What a rail is: all that the machine of orders, the routes, the wallet and the jobs ask of a way that money comes in by.
// Refuses to know any of them by name: a rail is a file that exports one of these, and a line in rails.ts.
import type { Deps } from "../deps.ts";
import type { OwnOption } from "../options/definitions.ts";
import type { OrderRow, PaymentDeps } from "./orders.ts";

type Options = Pick<Deps["options"], "get" | "text">;

export type RailDeps = PaymentDeps & Pick<Deps, "guard" | "reach" | "seal">;

/** One of the ways to pay that a rail offers. */
export interface RailMethod {
  /** As orders name it. */
  type: string;
  /** As buyers read it. */
  name: string;
  /** Least amount in dollars; 0: the rail's. */
  minimum: number;
}

/** Where the buyer goes: with `fields` by a form that is posted there, without by a plain visit. */
export interface PaymentStart {
  url: string;
  fields?: Record<string, string>;
}

/** What somebody sent to the rail's address; who it was, the rail has to find out. */
export interface RailCall {
  method: "GET" | "POST";
  query: URLSearchParams;
  contentType: string;
  body: Uint8Array;
  header: (name: string) => string;
}

/** An option of a rail: a row of the settings' group `payment`, its texts included. */
export interface RailOption extends OwnOption {
  /** Without it anybody could forge a payment. */
  isRequired?: boolean;
}

export interface PaymentRail {
  /** As its orders name it: small letters. */
  name: string;
  /** As root reads it. */
  title: string;
  /** Where its provider calls, below the site's address; absent: `/api/payment/<name>`. */
  callback?: string;
  /** What it is set up by, beside the site's own options of payment. */
  settings?: Readonly<Record<string, RailOption>>;
  /** Everything stands that keeps others from forging a payment. */
  isGuarded: (options: Options) => boolean;
  currency: (options: Options) => string;
  /** Units of its currency for a dollar of credit, as the option has it. */
  price: (options: Options) => string;
  /** Least amount in dollars. */
  minimum: (options: Options) => number;
  /** For how long an order waits. */
  seconds: number;
  methods: (options: Options) => readonly RailMethod[];
  /** Turns older clients' names of methods into its own. */
  methodOf?: (sent: string) => string;
  /** Tells the provider of an order whose row stands, marks it as pending, and answers where the buyer goes. */
  start: (deps: RailDeps, order: OrderRow) => Promise<PaymentStart>;
  /** Largest body of a callback. */
  maxBodyBytes: number;
  /** Takes in what was sent; resolves to what the provider is told, once the verdict is durable. Throws Failures. */
  receive: (deps: RailDeps, call: RailCall) => Promise<string>;
  /** Sends money back: `minor` of the order's currency, undefined: all that is left of the payment. Answers the event's number. */
  refund?: (deps: RailDeps, order: OrderRow, minor: number | undefined) => Promise<{ eventId: string }>;
  /** Asks what became of an order that has waited long; takes in what it hears. */
  ask?: (deps: RailDeps, order: OrderRow) => Promise<void>;
  /** Whether `ask` may be used. */
  mayAsk?: (options: Options) => boolean;
}
