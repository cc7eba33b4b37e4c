// Pages for paper: a receipt, a month's statement. What prints is the sheet alone, without the console's frame.
import { Download, Printer } from "lucide-react";
import type { Translate } from "./document.tsx";

type Pair = readonly [label: string, value: string];

export interface PaperTable {
  title: string;
  heads: readonly string[];
  /** So many columns of words come first; the others are figures. */
  words: number;
  rows: readonly (readonly string[])[];
}

function PrintButton({ t }: { t: Translate }) {
  return (
    <button type="button" className="btn btn-primary noscript:hidden" data-print>
      <Printer aria-hidden size={16} />
      {t("topup.print")}
    </button>
  );
}

function Facts({ facts }: { facts: readonly Pair[] }) {
  return (
    <dl className="facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd className="wrap-anywhere">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export interface ReceiptProps {
  t: Translate;
  title: string;
  site: string;
  facts: readonly Pair[];
  lines: readonly Pair[];
  total: Pair;
}

export function ReceiptView({ t, title, site, facts, lines, total }: ReceiptProps) {
  return (
    <article className="paper">
      <header className="paper-head">
        <div className="min-w-0">
          <p className="text-muted wrap-anywhere">{site}</p>
          <h1>{title}</h1>
        </div>
        <nav className="paper-tools" aria-label={t("topup.paperTools")}>
          <a className="btn btn-default" href="/topup">
            {t("topup.back")}
          </a>
          <PrintButton t={t} />
        </nav>
      </header>
      <Facts facts={facts} />
      <table className="table mt-6">
        <thead>
          <tr>
            <th scope="col">{t("topup.what")}</th>
            <th scope="col" className="text-right">
              {t("topup.paid")}
            </th>
          </tr>
        </thead>
        <tbody>
          {lines.map(([label, value]) => (
            <tr key={label}>
              <td className="whitespace-normal">{label}</td>
              <td className="text-right tabular-nums">{value}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr className="text-base-content">
            <th scope="row">{total[0]}</th>
            <td className="text-right font-semibold tabular-nums">{total[1]}</td>
          </tr>
        </tfoot>
      </table>
      <p className="mt-6 text-muted">{t("topup.notTaxInvoice")}</p>
    </article>
  );
}

export interface StatementProps {
  t: Translate;
  title: string;
  site: string;
  /** Whose, and which month. */
  subtitle: string;
  months: readonly { href: string; title: string; isCurrent: boolean }[];
  csv: string;
  balance: readonly Pair[];
  notes: readonly string[];
  tables: readonly PaperTable[];
}

export function StatementView(props: StatementProps) {
  const { t, title, site, subtitle, months, csv, balance, notes, tables } = props;
  return (
    <article className="paper">
      <header className="paper-head">
        <div className="min-w-0">
          <p className="text-muted wrap-anywhere">{site}</p>
          <h1>{title}</h1>
          <p className="wrap-anywhere">{subtitle}</p>
        </div>
        <div className="paper-tools">
          <a className="btn btn-default" href={csv} download>
            <Download aria-hidden size={16} />
            {t("topup.statement.csv")}
          </a>
          <PrintButton t={t} />
        </div>
      </header>
      <nav className="paper-months" aria-label={t("topup.statement.months")}>
        {months.map((month) => (
          <a
            key={month.title}
            className="btn btn-sm btn-default tabular-nums"
            href={month.href}
            aria-current={month.isCurrent ? "page" : undefined}
          >
            {month.title}
          </a>
        ))}
      </nav>
      <Facts facts={balance} />
      <ul className="mt-3 text-xs text-muted">
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
      {tables.length === 0 ? <p className="mt-6 text-muted">{t("topup.statement.empty")}</p> : null}
      {tables.map((table) => (
        <section key={table.title} className="mt-6">
          <h2>{table.title}</h2>
          <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={table.title}>
            <table className="table">
              <thead>
                <tr>
                  {table.heads.map((head, at) => (
                    <th key={head} scope="col" className={at < table.words ? undefined : "text-right"}>
                      {head}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {table.rows.map((row, index) => (
                  <tr key={index}>
                    {row.map((cell, at) => (
                      <td key={at} className={at < table.words ? "wrap-anywhere" : "text-right tabular-nums"}>
                        {cell}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      ))}
    </article>
  );
}
