// The site as root sees it: each node as a card of facts, then database, books, backup, letters, and the channels that have trouble.
// Refuses to need scripts: "look again" is a link to the same page, which with scripts replaces its parts alone.
import { RefreshCw } from "lucide-react";
import type { Translate } from "./document.tsx";

export type StatusTone = "success" | "warning" | "error" | "off";

export interface StatusFact {
  label: string;
  value: string;
  /** Absent: there is nothing to judge. */
  tone?: StatusTone | undefined;
}

export interface NodeCard {
  name: string;
  state: string;
  tone: StatusTone;
  facts: readonly StatusFact[];
  /** Where it tells nothing. */
  silent: string;
}

export interface TroubledChannel {
  href: string;
  name: string;
  state: string;
  tone: StatusTone;
  detail: string;
}

export interface NodeViewProps {
  t: Translate;
  title: string;
  /** When these figures are of. */
  at: string;
  nodes: readonly NodeCard[];
  site: readonly StatusFact[];
  channels: { summary: string; tone: StatusTone; troubled: readonly TroubledChannel[]; more: string };
}

/** @param wraps For a sentence, which is longer than a narrow card. */
function Word({ tone, wraps, children }: { tone: StatusTone; wraps?: boolean; children: string }) {
  return (
    <span className={wraps ? "status-word whitespace-normal" : "status-word"} data-tone={tone}>
      <span className="status" aria-hidden />
      {children}
    </span>
  );
}

function Facts({ facts }: { facts: readonly StatusFact[] }) {
  return (
    <dl className="facts facts-dense text-dense">
      {facts.map(({ label, value, tone }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd className="tabular-nums">{tone === undefined ? value : <Word tone={tone}>{value}</Word>}</dd>
        </div>
      ))}
    </dl>
  );
}

function Card({ name, state, tone, facts, silent }: NodeCard) {
  return (
    <li className="rounded-box border border-base-300 px-4 py-3">
      <h3 className="flex flex-wrap items-baseline justify-between gap-x-3 pb-1 text-dense">
        <code className="wrap-anywhere">{name}</code>
        <Word tone={tone} wraps>
          {state}
        </Word>
      </h3>
      {silent === "" ? <Facts facts={facts} /> : <p className="text-dense text-muted">{silent}</p>}
    </li>
  );
}

export function NodeView({ t, title, at, nodes, site, channels }: NodeViewProps) {
  // One node leaves room beside it.
  const isLone = nodes.length === 1;
  return (
    <div data-part="node" tabIndex={-1} className="grid gap-6 outline-0">
      <header className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h1>{title}</h1>
        <span className="grow text-dense text-muted" role="status">
          {at}
        </span>
        <a className="btn btn-default btn-sm" href="/node" data-get="node">
          <RefreshCw aria-hidden size={16} />
          {t("status.again")}
        </a>
      </header>
      <div className={`grid items-start gap-6 ${isLone ? "lg:grid-cols-2" : ""}`}>
        <section className="grid gap-3" aria-labelledby="node-nodes">
          <h2 id="node-nodes" className="text-base">
            {t("status.nodes")}
          </h2>
          <ul className={`grid gap-3 ${isLone ? "" : "sm:grid-cols-2 xl:grid-cols-3"}`}>
            {nodes.map((node) => (
              <Card key={node.name} {...node} />
            ))}
          </ul>
        </section>
        <div className={`grid items-start gap-6 ${isLone ? "" : "lg:grid-cols-2"}`}>
          <section className="grid gap-2" aria-labelledby="node-site">
            <h2 id="node-site" className="text-base">
              {t("status.site")}
            </h2>
            <Facts facts={site} />
          </section>
          <section className="grid gap-2" aria-labelledby="node-channels">
            <h2 id="node-channels" className="text-base">
              {t("status.channels")}
            </h2>
            <p className="text-dense">
              <Word tone={channels.tone}>{channels.summary}</Word>
            </p>
            {channels.troubled.length > 0 ? (
              <ul className="text-dense">
                {channels.troubled.map(({ href, name, state, tone, detail }) => (
                  <li
                    key={href}
                    className="flex min-h-9 flex-wrap items-center justify-between gap-x-4 border-b border-base-300 py-1"
                  >
                    <a className="link wrap-anywhere" href={href}>
                      {name}
                    </a>
                    <span className="flex flex-wrap gap-x-3">
                      <Word tone={tone}>{state}</Word>
                      {detail === "" ? null : <span className="text-muted">{detail}</span>}
                    </span>
                  </li>
                ))}
              </ul>
            ) : null}
            {channels.more === "" ? null : (
              <p className="text-dense">
                <a className="link" href="/channel">
                  {channels.more}
                </a>
              </p>
            )}
          </section>
        </div>
      </div>
    </div>
  );
}
