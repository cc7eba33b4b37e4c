// Rules tried on a request before they are saved: what comes in beside what would leave, and which rules acted. Nobody is asked.
// Refuses to guess: the server plans the request by the very code that serves calls.
import { FlaskConical } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import { api, call } from "../../../lib/api.ts";
import type { ResponseData } from "../../../lib/api.ts";
import type { Form } from "../../../lib/form.ts";
import { useT } from "../../../lib/i18n.ts";
import { toastFailure } from "../../../lib/toasts.ts";
import { BusyButton } from "../../../ui/busy-button.tsx";
import { bodyOf } from "../values.ts";
import type { ChannelValues } from "../values.ts";

type Outcome = ResponseData<typeof api.channel.try_rules.post>;

const PATHS = [
  "/v1/chat/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/embeddings",
  "/v1/images/generations",
];

function sampleBody(model: string): string {
  return JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], stream: true }, null, 2);
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function headerLines(text: string): Record<string, string> {
  const entries = text.split("\n").flatMap((line): [string, string][] => {
    const colon = line.indexOf(":");
    return colon > 0 ? [[line.slice(0, colon).trim(), line.slice(colon + 1).trim()]] : [];
  });
  return Object.fromEntries(entries);
}

const linesOf = (headers: Record<string, string>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");

function Side({ title, url, headers, body }: { title: string; url: string; headers: string; body: string }) {
  return (
    <section className="min-w-0" aria-label={title}>
      <h4 className="mb-1 text-dense font-semibold">{title}</h4>
      <pre className="mono max-h-96 overflow-auto rounded-box border border-base-300 bg-base-200 p-2 text-xs whitespace-pre-wrap wrap-anywhere">
        {[url, headers, body].filter((part) => part !== "").join("\n\n")}
      </pre>
    </section>
  );
}

function Acted({ sent }: { sent: NonNullable<Outcome["sent"]> }) {
  const t = useT();
  return (
    <dl className="facts" data-part="acted">
      <div>
        <dt>{t("channel.try.acted")}</dt>
        <dd className="mono">{sent.rules.length > 0 ? sent.rules.join(", ") : t("channel.try.none")}</dd>
      </div>
      {sent.dropped.length > 0 ? (
        <div>
          <dt>{t("channel.try.dropped")}</dt>
          <dd className="mono">{sent.dropped.join(", ")}</dd>
        </div>
      ) : null}
      {sent.system_prompt_tokens > 0 ? (
        <div>
          <dt>{t("channel.systemPrompt")}</dt>
          <dd>{t("channel.try.tokens", { count: sent.system_prompt_tokens })}</dd>
        </div>
      ) : null}
      {sent.is_repriced ? (
        <div>
          <dt>{t("channel.try.price")}</dt>
          <dd>{t("channel.try.repriced")}</dd>
        </div>
      ) : null}
    </dl>
  );
}

/** What was tried, kept so that both sides belong together while the fields are changed again. */
interface Tried {
  path: string;
  headers: string;
  body: string;
  outcome: Outcome;
}

/** Both sides beside each other, or what the client would read. */
function Result({ tried }: { tried: Tried | undefined }) {
  const t = useT();
  const sent = tried?.outcome.sent;
  const refused = tried?.outcome.refused;
  return (
    <div aria-live="polite" className="grid gap-3">
      {refused ? (
        <p className="wrap-anywhere text-dense text-error">
          {t("channel.try.refused", { status: refused.status, message: refused.message })}
        </p>
      ) : null}
      {tried && sent ? (
        <>
          <Acted sent={sent} />
          <div className="grid gap-3 md:grid-cols-2">
            <Side
              title={t("channel.try.before")}
              url={tried.path}
              headers={tried.headers.trim()}
              body={pretty(tried.body)}
            />
            <Side
              title={t("channel.try.after")}
              url={sent.url}
              headers={linesOf(sent.headers)}
              body={pretty(sent.body)}
            />
          </div>
        </>
      ) : null}
    </div>
  );
}

export interface TryPartProps {
  form: Form<ChannelValues>;
  /** undefined: the channel is not saved yet. */
  channelId: number | undefined;
  model: string;
}

export function TryPart({ form, channelId, model }: TryPartProps) {
  const t = useT();
  const id = useId();
  const [path, setPath] = useState(PATHS[0] ?? "");
  const [headers, setHeaders] = useState("");
  const [body, setBody] = useState(() => sampleBody(model));
  const [status, setStatus] = useState("");
  const [tried, setTried] = useState<Tried>();
  const [isBusy, setBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  // The button that opened it is gone.
  useEffect(() => first.current?.focus(), []);

  const run = async (): Promise<void> => {
    setBusy(true);
    const values = bodyOf(form.values);
    const { type, base_url, other, model_mapping, param_override, header_override, setting, settings } =
      values;
    try {
      const outcome = await call(
        api.channel.try_rules.post({
          ...(channelId === undefined ? {} : { id: channelId }),
          type,
          base_url,
          other: other === "" ? null : other,
          model_mapping,
          param_override,
          header_override,
          setting,
          settings,
          request: { path, headers: headerLines(headers), body, last_status: Number(status) || null },
        }),
      );
      setTried({ path, headers, body, outcome });
    } catch (error) {
      toastFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div
      data-part="try"
      className="mb-6 grid gap-3 rounded-box border border-base-300 p-3"
      role="group"
      aria-label={t("channel.try.title")}
    >
      <p className="text-xs text-muted">{t("channel.try.hint")}</p>
      <div className="grid gap-2 sm:grid-cols-2">
        <div className="grid gap-0.5">
          <label className="text-xs text-muted" htmlFor={`${id}-path`}>
            {t("channel.try.path")}
          </label>
          <input
            id={`${id}-path`}
            ref={first}
            className="input mono"
            list={`${id}-paths`}
            value={path}
            spellCheck={false}
            onChange={(event) => setPath(event.target.value)}
          />
          <datalist id={`${id}-paths`}>
            {PATHS.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </div>
        <div className="grid gap-0.5">
          <label className="text-xs text-muted" htmlFor={`${id}-status`}>
            {t("channel.try.lastStatus")}
          </label>
          <input
            id={`${id}-status`}
            className="input mono"
            inputMode="numeric"
            placeholder={t("channel.try.firstAttempt")}
            value={status}
            onChange={(event) => setStatus(event.target.value)}
          />
        </div>
      </div>
      <div className="grid gap-0.5">
        <label className="text-xs text-muted" htmlFor={`${id}-headers`}>
          {t("channel.try.headers")}
        </label>
        <textarea
          id={`${id}-headers`}
          className="textarea mono"
          rows={2}
          spellCheck={false}
          placeholder="anthropic-beta: context-1m-2025-08-07"
          value={headers}
          onChange={(event) => setHeaders(event.target.value)}
        />
      </div>
      <div className="grid gap-0.5">
        <label className="text-xs text-muted" htmlFor={`${id}-body`}>
          {t("channel.try.body")}
        </label>
        <textarea
          id={`${id}-body`}
          className="textarea mono"
          rows={8}
          spellCheck={false}
          value={body}
          onChange={(event) => setBody(event.target.value)}
        />
      </div>
      <div>
        <BusyButton className="btn-sm btn-default" isBusy={isBusy} onPress={() => void run()}>
          <FlaskConical aria-hidden size={14} />
          {t("channel.try.run")}
        </BusyButton>
      </div>
      <Result tried={tried} />
    </div>
  );
}
