// The routing simulator: which channel and key would serve a call now, who would be asked after it, and what keeps the others out.
// Refuses to ask any upstream: the server looks at what its next call would go by.
import { useRef, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { timeZone, user } from "../../lib/boot.ts";
import { formatDateTime } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { RouteReport } from "../../lib/wire.ts";
import { StatusDot } from "../../ui/badges.tsx";
import type { StatusTone } from "../../ui/badges.tsx";
import { Drawer } from "../../ui/drawer.tsx";

type Candidate = RouteReport["candidates"][number];

const PATHS = [
  "/v1/chat/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/embeddings",
  "/v1/rerank",
  "/v1/images/generations",
  "/v1/audio/speech",
];
const TONES: Readonly<Record<string, StatusTone>> = {
  chosen: "ok",
  turn: "running",
  priority: "running",
  resting: "attention",
  keys_resting: "attention",
  full: "attention",
};

export default function RouteDrawer() {
  const t = useT();
  const form = useRef<HTMLFormElement>(null);
  const [report, setReport] = useState<RouteReport>();
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const ask = async (values: FormData) => {
    const text = (name: string): string => {
      const value = values.get(name);
      return typeof value === "string" ? value.trim() : "";
    };
    setBusy(true);
    setFailure(undefined);
    try {
      setReport(
        await call(
          api.channel.route.post({
            user_id: Number(text("user")),
            token_id: Number(text("key")),
            group: text("group"),
            model: text("model"),
            path: text("path"),
            tokens: Number(text("tokens")),
            session: text("session"),
          }),
        ),
      );
    } catch (error) {
      setFailure(failureMessage(error));
    }
    setBusy(false);
  };
  return (
    <Drawer
      isOpen
      title={t("channel.route.title")}
      width="normal"
      onClose={() => setQuery({ route: undefined })}
      footer={
        <button
          type="button"
          className="btn btn-primary ml-auto"
          disabled={isBusy}
          onClick={() => form.current?.requestSubmit()}
        >
          {t("channel.route.ask")}
        </button>
      }
    >
      <p className="mb-3 text-xs text-muted">{t("channel.route.hint")}</p>
      <form
        ref={form}
        className="mb-4 grid gap-x-4 gap-y-3 sm:grid-cols-2"
        onSubmit={(event) => {
          event.preventDefault();
          void ask(new FormData(event.currentTarget));
        }}
      >
        <Line name="model" label={t("channel.route.model")} isRequired />
        <label className="block">
          <span className="mb-1 block text-dense">{t("channel.route.path")}</span>
          <select name="path" className="select w-full">
            {PATHS.map((path) => (
              <option key={path}>{path}</option>
            ))}
          </select>
        </label>
        <Line
          name="user"
          label={t("channel.route.user")}
          initial={String(user.value?.id ?? "")}
          isNumber
          isRequired
        />
        <Line name="key" label={t("channel.route.key")} isNumber />
        <Line name="group" label={t("channel.route.group")} />
        <Line name="tokens" label={t("channel.route.tokens")} initial="1000" isNumber />
        <div className="col-span-full">
          <Line name="session" label={t("channel.route.session")} />
        </div>
      </form>
      {failure ? (
        <p role="alert" className="mb-3 text-error">
          {failure}
        </p>
      ) : null}
      <div role="status">{report ? <Report report={report} t={t} /> : null}</div>
    </Drawer>
  );
}

interface LineProps {
  name: string;
  label: string;
  initial?: string;
  isNumber?: boolean;
  isRequired?: boolean;
}

function Line({ name, label, initial = "", isNumber = false, isRequired = false }: LineProps) {
  return (
    <label className="block">
      <span className="mb-1 block text-dense">{label}</span>
      <input
        name={name}
        className="input w-full"
        defaultValue={initial}
        required={isRequired}
        autoComplete="off"
        {...(isNumber ? { inputMode: "numeric" as const, pattern: "[0-9]*" } : {})}
      />
    </label>
  );
}

function Report({ report, t }: { report: RouteReport; t: Translate }) {
  const { refused, session, candidates } = report;
  return (
    <>
      {session ? (
        <p className="mb-3">
          <StatusDot
            tone={session.state === "kept" ? "ok" : "attention"}
            reason={session.reason ? t(`channel.route.leftFor.${session.reason}`) : undefined}
          >
            {t(`channel.route.session.${session.state}`, { id: session.channel_id })}
          </StatusDot>
        </p>
      ) : null}
      {refused ? (
        <p className="mb-3">
          <StatusDot tone="broken" reason={refused.message}>
            {t("channel.route.refused", { status: refused.status, code: refused.code })}
          </StatusDot>
        </p>
      ) : null}
      <ol>
        {candidates.map((candidate) => (
          <li key={candidate.id} className="border-t border-base-300 py-2">
            <Place candidate={candidate} t={t} />
          </li>
        ))}
      </ol>
    </>
  );
}

const timeOf = (until: number): string => formatDateTime(until * 1000, timeZone.value).slice(5, 19);

function Place({ candidate, t }: { candidate: Candidate; t: Translate }) {
  const { id, name, order, verdict, until, detail, key_index, keys, group, priority } = candidate;
  const reason = [until > 0 ? t("channel.restsUntil", { time: timeOf(until) }) : "", detail]
    .filter(Boolean)
    .join(" · ");
  const key =
    candidate.multi_key_mode === "random"
      ? t("channel.route.anyKey")
      : t("channel.route.keyOf", { number: key_index + 1 });
  return (
    <>
      <p className="flex flex-wrap items-baseline gap-x-3">
        <span className="font-semibold wrap-anywhere">
          {order > 0 ? `${order}. ` : ""}
          {name} <span className="font-normal text-muted">#{id}</span>
        </span>
        <StatusDot tone={TONES[verdict] ?? "off"} reason={reason || undefined}>
          {t(`channel.route.verdict.${verdict}`)}
        </StatusDot>
        <span className="ml-auto text-xs text-muted">
          {[t("channel.route.priority", { priority }), group, order > 0 && keys.length > 1 ? key : ""]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </p>
      {keys.length > 1 ? (
        <ul className="mt-1 flex flex-wrap gap-x-3 text-xs text-muted">
          {keys.map((each) => (
            <li
              key={each.index}
              className={each.index === key_index ? "font-semibold text-base-content" : ""}
            >
              {t("channel.route.keyState", {
                number: each.index + 1,
                state:
                  each.until > 0
                    ? t("channel.restsUntil", { time: timeOf(each.until) })
                    : t(`channel.route.keyVerdict.${each.verdict}`),
              })}
            </li>
          ))}
        </ul>
      ) : null}
    </>
  );
}
