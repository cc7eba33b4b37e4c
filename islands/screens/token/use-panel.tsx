// How to use a key: ready code, addresses for clients, chat links; after a key was made, or from its row.
// Refuses to print old keys in full: they are masked in the code, and copied in full.
import { MessageSquare, TriangleAlert } from "lucide-react";
import { useState } from "react";
import type { PricesToCome } from "../../../src/shared/prices-to-come.ts";
import { user } from "../../lib/boot.ts";
import { chatLinks, serverAddress } from "../../lib/chat-links.ts";
import { maskSecret } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Notice } from "../../ui/feedback.tsx";
import ModelNotices from "../../ui/model-notices.tsx";
import { openChat } from "./open-chat.ts";
import { SAMPLE_NAMES, sampleCode } from "./samples.ts";
import type { SampleName } from "./samples.ts";
import { mayPrice, PriceAction } from "../../ui/price-action.tsx";
import { useOwnUnpriced } from "../../lib/own-unpriced.ts";
import type { ModelNotice, TokenRow } from "../../lib/wire.ts";

const FALLBACK_MODEL = "gpt-4o-mini";

export interface UsePanelProps {
  keys: readonly TokenRow[];
  /** They were made a moment ago and are shown in full once. */
  isNew: boolean;
  /** Models of the account, for keys without a limit of their own. */
  models: readonly string[];
  notices: readonly ModelNotice[];
  pricesToCome: readonly PricesToCome[];
  onClose: () => void;
}

function modelsOf(row: TokenRow | undefined, models: readonly string[]): string[] {
  const own = row?.model_limits_enabled ? row.model_limits.split(",").filter((name) => name !== "") : [];
  return own.length > 0 ? own : [...models];
}

export default function UsePanel({ keys, isNew, models, notices, pricesToCome, onClose }: UsePanelProps) {
  const t = useT();
  const [tab, setTab] = useState<SampleName | "clients">("curl");
  const [first] = keys;
  const offered = modelsOf(first, models);
  const [chosen, setChosen] = useState("");
  const { unpriced, refresh } = useOwnUnpriced();
  const model = offered.includes(chosen)
    ? chosen
    : offered.includes(FALLBACK_MODEL)
      ? FALLBACK_MODEL
      : (offered[0] ?? FALLBACK_MODEL);
  if (!first) return null;
  const base = serverAddress();
  const fullKey = `sk-${first.key}`;
  const shown = isNew ? fullKey : `sk-${maskSecret(first.key)}`;
  const tabs = [...SAMPLE_NAMES, "clients"] as const;
  return (
    <>
      <ModelNotices
        notices={notices}
        pricesToCome={pricesToCome}
        {...(first.model_limits_enabled ? { models: offered } : {})}
      />
      <Notice tone="success" onClose={onClose}>
        <h2 className="font-semibold">
          {keys.length === 1
            ? t("token.useTitle", { name: first.name })
            : t("token.createdMany", { count: keys.length })}
        </h2>
        <ul className="mt-2 flex flex-col gap-1 max-h-60 overflow-auto">
          {keys.map((row) => (
            <li key={row.id} className="flex items-center gap-2 min-w-0">
              {keys.length > 1 ? <span className="text-muted truncate">{row.name}</span> : null}
              <code className="mono break-all">{isNew ? `sk-${row.key}` : `sk-${maskSecret(row.key)}`}</code>
              <CopyButton text={`sk-${row.key}`} label={t("token.copyKey", { name: row.name })} />
            </li>
          ))}
        </ul>
        {keys.length > 1 ? (
          <CopyButton
            text={keys.map((row) => `sk-${row.key}`).join("\n")}
            label={t("token.copyAll")}
            withText
            className="mt-2"
          />
        ) : null}
        <div
          className="mt-3 flex flex-wrap items-center gap-2"
          role="group"
          aria-label={t("token.codeLanguage")}
        >
          {tabs.map((each) => (
            <button
              key={each}
              type="button"
              className="btn btn-sm btn-default"
              aria-pressed={each === tab}
              onClick={() => setTab(each)}
            >
              {each === "clients" ? t("token.clients") : each}
            </button>
          ))}
          {tab !== "clients" && offered.length > 1 ? (
            <label className="flex items-center gap-2">
              <span className="text-muted">{t("token.model")}</span>
              <select
                className="select select-sm w-auto max-w-60"
                value={model}
                onChange={(event) => setChosen(event.target.value)}
              >
                {offered.slice(0, 500).map((name) => (
                  <option key={name} value={name}>
                    {unpriced.has(name) ? `${name} (${t("price.noPrice")})` : name}
                  </option>
                ))}
              </select>
            </label>
          ) : null}
          {tab === "clients" ? null : (
            <CopyButton text={sampleCode(tab, base, fullKey, model)} label={t("common.copy")} withText />
          )}
        </div>
        {tab !== "clients" && unpriced.has(model) ? (
          <p role="status" className="mt-2 flex flex-wrap items-center gap-2 text-warning-text">
            <TriangleAlert aria-hidden size={16} className="flex-none" />
            <span className="min-w-0 wrap-anywhere">
              {t("price.unpriced", { count: 1, names: model })}
              {mayPrice(user.value) ? null : ` ${t("price.askAdmin")}`}
            </span>
            <PriceAction models={[model]} onPriced={refresh} />
          </p>
        ) : null}
        {tab === "clients" ? (
          <Clients base={base} row={first} />
        ) : (
          <pre className="code-block mt-2" tabIndex={0} role="region" aria-label={tab}>
            <code>{sampleCode(tab, base, shown, model)}</code>
          </pre>
        )}
      </Notice>
    </>
  );
}

/** What clients ask for, and the operator's chat links. */
function Clients({ base, row }: { base: string; row: TokenRow }) {
  const t = useT();
  const links = chatLinks();
  const addresses = [
    ["OpenAI", `${base}/v1`],
    ["Anthropic", base],
    ["Gemini", base],
  ] as const;
  return (
    <>
      <dl className="facts facts-dense mt-2">
        {addresses.map(([name, address]) => (
          <div key={name}>
            <dt>{t("token.addressFor", { name })}</dt>
            <dd className="inline-flex items-center gap-1 mono">
              {address}
              <CopyButton text={address} label={t("token.copyAddress", { name })} />
            </dd>
          </div>
        ))}
      </dl>
      {links.length > 0 ? (
        <div className="mt-3 flex flex-wrap gap-2" role="group" aria-label={t("token.chatLinks")}>
          {links.map((link, index) => (
            <button
              key={`${index}-${link.title}`}
              type="button"
              className="btn btn-sm btn-default"
              onClick={() => openChat(link.template, row.key, t("token.chatBroken"))}
            >
              <MessageSquare aria-hidden size={14} />
              {link.title}
            </button>
          ))}
        </div>
      ) : (
        <p className="mt-1 text-xs text-muted">{t("token.chatNone")}</p>
      )}
    </>
  );
}
