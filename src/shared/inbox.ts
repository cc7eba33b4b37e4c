// The kinds of the operator's inbox as rows: how grave an item is, what leads to its cure, and how it is said.
// A new kind is a row here, its two texts in locales/*/inbox.json, and whoever meets the cause.
import { Role } from "./enums.ts";

/** What an item names: figures and names, by the placeholders of its sentence. */
export type InboxParams = Readonly<Record<string, string | number>>;

/** "broken": calls or money are at stake; "attention": it can wait until somebody looks. */
export type InboxTone = "attention" | "broken";

/** Kinds that are switched together: `inbox.letters.<name>`. */
type LetterSwitch =
  "channel" | "price" | "audit" | "settlement" | "disk" | "database" | "mail" | "payment" | "balance";

interface InboxKindRow {
  tone: InboxTone;
  letters: LetterSwitch;
  /** A state that is looked at again and again: it closes itself, and closing it by hand would not last. */
  isLasting?: boolean;
  /** Root is also told that it is over. */
  tellsBack?: boolean;
  /** Where an administrator goes on; absent: nothing in the console cures it. */
  href?: (subject: string) => string;
  /** Only root may go there. */
  isForRoot?: boolean;
  /** It tells root of an administrator: only root closes it, or puts it off. */
  isRootsToClose?: boolean;
}

const costsHref = (channel: string): string => `/prices?section=costs&channel=${encodeURIComponent(channel)}`;

const ROWS = {
  channel: {
    tone: "attention",
    letters: "channel",
    tellsBack: true,
    href: (id) => `/channel?edit=${encodeURIComponent(id)}`,
  },
  price: {
    tone: "attention",
    letters: "price",
    href: (model) => `/prices?view=unpriced&q=${encodeURIComponent(model)}`,
  },
  /** A draft that was scheduled and could not be applied. */
  price_draft: { tone: "attention", letters: "price", href: () => "/prices?section=drafts" },
  /** What a channel's calls cost is more than they brought, over a day. */
  margin: { tone: "attention", letters: "price", isLasting: true, href: costsHref },
  /** Calls and attempts that cost, and that nobody was charged for. */
  uncharged: { tone: "attention", letters: "price", isLasting: true, href: costsHref },
  /** A cost row is above the price of sale. */
  cost_price: { tone: "attention", letters: "price", isLasting: true, href: costsHref },
  price_sync: { tone: "attention", letters: "price", href: () => "/prices?section=sync" },
  price_sync_waits: { tone: "attention", letters: "price", href: () => "/prices?section=sync" },
  audit: { tone: "broken", letters: "audit", isLasting: true },
  settlement_lost: { tone: "broken", letters: "settlement", isLasting: true },
  settlement_refused: { tone: "broken", letters: "settlement", isLasting: true },
  journal_put_away: { tone: "broken", letters: "settlement", isLasting: true },
  /** A node found the database in an older state than it had been. */
  database_fell_back: { tone: "broken", letters: "database" },
  /** A node answers no calls any more: its books are another's, or lack what its journal no longer has. */
  node_stopped: { tone: "broken", letters: "settlement", isLasting: true },
  /** A node ended without a word, and nobody has entered its journal since. */
  node_lost: { tone: "broken", letters: "settlement", href: () => "/node", isForRoot: true },
  dispute: {
    tone: "attention",
    letters: "payment",
    href: (order) => `/order?order=${encodeURIComponent(order)}`,
  },
  payment: {
    tone: "attention",
    letters: "payment",
    href: (order) => `/order?order=${encodeURIComponent(order)}`,
  },
  disk: { tone: "attention", letters: "disk", isLasting: true },
  database: { tone: "broken", letters: "database", isLasting: true },
  /** One that comes round by itself did not come about, or found something wrong in the books. */
  backup_failed: { tone: "broken", letters: "database", isLasting: true },
  /** The last whole one is more than a day old. */
  backup_late: { tone: "broken", letters: "database", isLasting: true },
  /** An administrator changed a balance. */
  balance: {
    tone: "attention",
    letters: "balance",
    isRootsToClose: true,
    href: (subject) => `/user?edit=${encodeURIComponent(subject.split(":")[1] ?? "")}`,
  },
  /** An administrator changed many balances in one run. */
  balance_run: {
    tone: "attention",
    letters: "balance",
    isRootsToClose: true,
    href: (run) => `/user?run=${encodeURIComponent(run)}`,
  },
  /** An administrator gave a plan away, or ended one. */
  plan_by_hand: {
    tone: "attention",
    letters: "balance",
    isRootsToClose: true,
    href: (subject) => `/user?plans=${encodeURIComponent(subject.split(":")[1] ?? "")}`,
  },
  /** An administrator made codes for balance, or raised what one is worth. */
  codes: {
    tone: "attention",
    letters: "balance",
    isRootsToClose: true,
    href: (subject) => `/redemption?keyword=${encodeURIComponent(subject.replace(/^\d+:(?:\d+:)?/, ""))}`,
  },
  /** Most of a user's budget is spent, and nothing of theirs takes a notice. */
  budget: {
    tone: "attention",
    letters: "balance",
    href: (id) => `/user?edit=${encodeURIComponent(id)}`,
  },
  mail: { tone: "attention", letters: "mail", href: () => "/setting?tab=system#SMTPServer", isForRoot: true },
  /** Letters that were given up. */
  letter: {
    tone: "attention",
    letters: "mail",
    href: () => "/setting?tab=system#SMTPServer",
    isForRoot: true,
  },
} as const satisfies Record<string, InboxKindRow>;

export type InboxKind = keyof typeof ROWS;

/** What lasts is seen again every ten minutes, the books every hour; unseen for so long, nobody looks after it any more. */
const UNSEEN_SECONDS = 2 * 3600;

export const INBOX_KINDS = Object.keys(ROWS) as InboxKind[];

export const inboxKinds: Readonly<Record<InboxKind, InboxKindRow>> = ROWS;

/** Of a text out of a database or an address, which an older or newer build may have written. */
export function isInboxKind(text: string): text is InboxKind {
  return Object.hasOwn(ROWS, text);
}

/**
 * Whether the item closes itself, so that a person could not close it for long. What was last seen hours ago was told by a node that is
 * gone, or by a job that is switched off.
 */
export function closesItself(kind: InboxKind, lastSeenAt: number, nowSeconds: number): boolean {
  return inboxKinds[kind].isLasting === true && nowSeconds - lastSeenAt < UNSEEN_SECONDS;
}

/** As much of an item as its sentence needs. */
export interface SaidItem {
  kind: InboxKind;
  subject: string;
  params: InboxParams;
}

type Translate = (key: string, params?: Record<string, string | number>) => string;

/** The item in one sentence. Params that end in `_en` replace their namesakes for readers of English. */
export function inboxSentence(
  t: Translate,
  language: "zh" | "en",
  { kind, subject, params }: SaidItem,
): string {
  const own: Record<string, string | number> = { ...params, subject };
  if (language === "en")
    for (const [name, value] of Object.entries(params))
      if (name.endsWith("_en")) own[name.slice(0, -"_en".length)] = value;
  return t(`inbox.say.${kind}`, own);
}

/** Where the item's cure is for somebody of the role; undefined: not in the console, or not open to them. */
export function inboxHref(
  { kind, subject }: Pick<SaidItem, "kind" | "subject">,
  role: number,
): string | undefined {
  const { href, isForRoot } = inboxKinds[kind];
  return isForRoot && role < Role.root ? undefined : href?.(subject);
}
