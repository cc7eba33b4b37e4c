// "I come from …": where the old site's data lies, how far the import is, and what of it a person has to hear.
// Refuses to be forgotten: a page that is loaded anew while it runs shows where it stands.
import { Check } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { ApiFailure, api, call, failureMessage } from "../../lib/api.ts";
import { downloadText } from "../../lib/csv.ts";
import { useForm } from "../../lib/form.ts";
import { formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { Notice } from "../../ui/feedback.tsx";
import { TextField } from "../../ui/form.tsx";

const LOOK_MS = 1000;
const EXAMPLES = [
  "/data/one-api.db",
  "user:password@tcp(host:3306)/newapi",
  "postgres://user:password@host/newapi",
];

interface Told {
  state: "none" | "running" | "failed" | "done";
  step?: string;
  done?: number;
  total?: number;
  left_seconds?: number;
  report?: string[];
  error?: string;
}

export default function MoveIn({ isRunning, onBack }: { isRunning: boolean; onBack: () => void }) {
  const t = useT();
  const [told, setTold] = useState<Told>({ state: isRunning ? "running" : "none" });
  const [refusal, setRefusal] = useState("");
  const heading = useRef<HTMLHeadingElement>(null);
  const form = useForm({
    initial: { source: "" },
    validate: ({ source }) => (source.trim() === "" ? { source: t("setup.move.noSource") } : {}),
  });
  const { state } = told;

  useEffect(() => heading.current?.focus(), [state]);

  useEffect(() => {
    if (state !== "running") return undefined;
    let timer: ReturnType<typeof setTimeout>;
    const look = async () => {
      // A server that is busy, or away for a moment, is asked again.
      const next = await call(api.setup.import.get()).catch(() => undefined);
      // Another page had its report: the site is there.
      if (next?.state === "none") location.assign("/login");
      else if (next) setTold(next);
      timer = setTimeout(() => void look(), LOOK_MS);
    };
    timer = setTimeout(() => void look(), LOOK_MS / 4);
    return () => clearTimeout(timer);
  }, [state]);

  const begin = async ({ source }: { source: string }) => {
    setRefusal("");
    try {
      await call(api.setup.import.post({ source: source.trim() }));
      setTold({ state: "running" });
    } catch (error) {
      if (error instanceof ApiFailure && error.code === "setup_import_refused")
        form.fail("source", failureMessage(error));
      else setRefusal(error instanceof ApiFailure ? failureMessage(error) : t("setup.move.failed"));
    }
  };

  return (
    <section className="rounded-box border border-base-300 bg-base-100 px-5 py-4">
      <h2 ref={heading} tabIndex={-1} className="mb-3 flex items-center gap-2 outline-none">
        {state === "done" ? <Check aria-hidden size={20} className="flex-none text-success" /> : null}
        {t(state === "done" ? "setup.move.done" : "setup.move.title")}
      </h2>
      {state === "running" ? <Running told={told} /> : null}
      {state === "done" ? <Done report={told.report ?? []} /> : null}
      {state === "none" || state === "failed" ? (
        <form
          ref={form.element}
          noValidate
          method="post"
          onSubmit={(event) => {
            event.preventDefault();
            void form.submit(begin);
          }}
        >
          <p className="mb-3 max-w-[72ch] text-muted">{t("setup.move.text")}</p>
          <TextField
            form={{ ...form, isChanged: () => false }}
            name="source"
            label={t("setup.move.source")}
            hint={<Examples />}
            input={{ autoComplete: "off", spellCheck: false }}
            isMono
            isRequired
          />
          <ul className="mt-3 grid max-w-[72ch] list-disc gap-1 pl-5 text-muted">
            <li>{t("setup.move.stop")}</li>
            <li>{t("setup.move.readOnly")}</li>
            <li>{t("setup.move.closed")}</li>
          </ul>
          {state === "failed" || refusal !== "" ? (
            <div className="mt-4">
              <Notice tone="error">{refusal || told.error || t("setup.move.failed")}</Notice>
            </div>
          ) : null}
          <div className="mt-5 flex flex-wrap-reverse justify-end gap-2">
            <button type="button" className="btn btn-default" disabled={form.isBusy} onClick={onBack}>
              {t("setup.back")}
            </button>
            <button type="submit" className="btn btn-primary" disabled={form.isBusy} aria-busy={form.isBusy}>
              {form.isBusy ? <span className="loading loading-spinner loading-xs" aria-hidden /> : null}
              {t("setup.move.begin")}
            </button>
          </div>
        </form>
      ) : null}
    </section>
  );
}

function Examples() {
  const t = useT();
  return (
    <>
      {t("setup.move.sourceHint")}
      {EXAMPLES.map((example) => (
        <code key={example} className="mono mt-1 block wrap-anywhere">
          {example}
        </code>
      ))}
    </>
  );
}

function Running({ told: { step, done, total, left_seconds: left } }: { told: Told }) {
  const t = useT();
  return (
    <div role="status">
      <progress
        className="progress progress-primary w-full"
        aria-label={t("setup.move.title")}
        {...(total ? { value: done ?? 0, max: total } : {})}
      />
      <p className="mt-2 tabular-nums">
        {step === undefined || total === undefined
          ? t("setup.move.starting")
          : t("setup.move.step", { step, done: formatNumber(done ?? 0), total: formatNumber(total) })}
      </p>
      {left === undefined ? null : (
        <p className="text-muted tabular-nums">{t("setup.move.left", { seconds: formatNumber(left) })}</p>
      )}
      <p className="mt-3 max-w-[72ch] text-muted">{t("setup.move.stay")}</p>
    </div>
  );
}

function Done({ report }: { report: readonly string[] }) {
  const t = useT();
  const text = report.join("\n");
  return (
    <>
      <p className="max-w-[72ch]">{t("setup.move.doneText")}</p>
      <pre
        tabIndex={0}
        aria-label={t("setup.move.report")}
        className="mono mt-3 max-h-96 overflow-auto rounded-box border border-base-300 bg-base-200 p-3 text-xs whitespace-pre-wrap wrap-anywhere"
      >
        {text}
      </pre>
      <div className="mt-5 flex flex-wrap-reverse justify-end gap-2">
        <button
          type="button"
          className="btn btn-default"
          onClick={() => downloadText("weir-import.txt", text, "text/plain;charset=utf-8")}
        >
          {t("setup.move.save")}
        </button>
        <a className="btn btn-primary" href="/login">
          {t("setup.move.signIn")}
        </a>
      </div>
    </>
  );
}
