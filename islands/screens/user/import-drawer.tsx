// Accounts by a file: chosen, looked at, begun. What it would do stands there with its numbers before anything is done.
// Refuses to begin a file with one wrong line; each is named by its line, and they can be copied.
import { useId, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { downloadText } from "../../lib/csv.ts";
import { formatNumber, formatQuota } from "../../lib/format.ts";
import { useForm } from "../../lib/form.ts";
import { hasText, useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { patchUrl } from "../../lib/url-state.ts";
import { When } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { DrawerForm } from "../../ui/drawer.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { TextField } from "../../ui/form.tsx";
import { Result } from "../../ui/result.tsx";

const MAX_REASON = 200;
const MAX_CHARACTERS = 2_000_000;
const SAMPLE = [
  "username,email,display_name,password,group,remark,credit_usd",
  "grace,grace@example.org,Grace,,default,Spring course,5",
  "",
].join("\r\n");

interface Problem {
  line: number;
  code: string;
  params?: Record<string, string | number>;
}

interface Report {
  create: number;
  change: number;
  unchanged: number;
  added: number;
  taken: number;
  problems: readonly Problem[];
  problem_count: number;
  plan: string;
  earlier: { id: number; created_at: number } | null;
}

interface Looked {
  name: string;
  csv: string;
  report: Report;
}

interface ImportValues extends Record<string, unknown> {
  reason: string;
}

const isMoney = ({ added, taken }: Report): boolean => added + taken > 0;

export default function ImportDrawer({
  onClose,
  onStarted,
}: {
  onClose: () => void;
  onStarted: (run: number) => void;
}) {
  const t = useT();
  const [looked, setLooked] = useState<Looked>();
  const [isLooking, setLooking] = useState(false);
  const [failure, setFailure] = useState("");
  const form = useForm<ImportValues>({
    initial: { reason: "" },
    validate: ({ reason }) =>
      looked && isMoney(looked.report) && reason.trim() === "" ? { reason: t("user.noReason") } : {},
  });
  const look = async (name: string, csv: string) => {
    setFailure("");
    setLooking(true);
    try {
      const answer = (await call(api.user.import.post({ csv }))) as { report: Report };
      setLooked({ name, csv, report: answer.report });
    } catch (error) {
      setLooked(undefined);
      setFailure(failureMessage(error));
    } finally {
      setLooking(false);
    }
  };
  const choose = async (file: File | undefined) => {
    if (!file) return;
    if (file.size > MAX_CHARACTERS * 3) setFailure(t("user.import.large"));
    else await look(file.name, await file.text());
  };
  const count = looked ? looked.report.create + looked.report.change : 0;
  return (
    <DrawerForm
      form={{ ...form, isChanged: () => false }}
      isOpen
      isNew
      title={t("user.import.title")}
      saveLabel={
        count > 0
          ? t("user.import.begin", { count, number: formatNumber(count) })
          : t("user.import.beginNone")
      }
      onClose={onClose}
      onSave={async ({ reason }) => {
        if (!looked || count === 0 || looked.report.problem_count > 0) {
          toast({
            key: "import",
            tone: "warning",
            text: t(looked ? "user.import.mend" : "user.import.chooseFirst"),
          });
          throw new DOMException("nothing to begin", "AbortError");
        }
        const { csv, report } = looked;
        const answer = (await call(
          api.user.import.post({ csv, plan: report.plan, reason: reason.trim() }),
        )) as {
          id: number;
        };
        onStarted(answer.id);
      }}
    >
      <p className="text-muted">{t("user.import.text")}</p>
      <p className="mt-1 mb-4 text-sm">
        <button type="button" className="link" onClick={() => downloadText("users-sample.csv", SAMPLE)}>
          {t("user.import.sample")}
        </button>
      </p>
      <FileField
        isBusy={isLooking}
        name={looked?.name}
        onChoose={(file) => void choose(file).catch(toastFailure)}
      />
      {failure === "" ? null : <Notice tone="error">{failure}</Notice>}
      {looked ? <Outcome key={looked.report.plan} report={looked.report} /> : null}
      {looked && isMoney(looked.report) ? (
        <TextField
          form={form}
          name="reason"
          label={t("user.reason")}
          hint={t("user.reasonHint")}
          isRequired
          limit={MAX_REASON}
          input={{ autoComplete: "off" }}
        />
      ) : null}
    </DrawerForm>
  );
}

function FileField({
  isBusy,
  name,
  onChoose,
}: {
  isBusy: boolean;
  name: string | undefined;
  onChoose: (file: File | undefined) => void;
}) {
  const t = useT();
  const id = useId();
  return (
    <div className="mb-4">
      <label htmlFor={id} className="text-dense font-semibold">
        {t("user.import.file")}
      </label>
      <input
        id={id}
        type="file"
        accept=".csv,.tsv,text/csv,text/tab-separated-values"
        className="input mt-1 h-auto cursor-pointer py-1.5 file:mr-3 file:cursor-pointer file:rounded-field file:border file:border-solid file:border-base-300 file:bg-base-200 file:px-3 file:py-1 file:font-semibold file:text-base-content"
        data-autofocus=""
        aria-busy={isBusy}
        aria-describedby={`${id}-below`}
        onChange={(event) => {
          onChoose(event.target.files?.[0]);
          // The same file, mended, may be chosen again.
          event.target.value = "";
        }}
      />
      <p id={`${id}-below`} role="status" className="mt-1 min-h-4.5 text-xs text-muted wrap-anywhere">
        {isBusy ? t("user.import.looking") : (name ?? t("user.import.fileHint"))}
      </p>
    </div>
  );
}

function Outcome({ report }: { report: Report }) {
  const t = useT();
  const id = useId();
  const { create, change, unchanged, added, taken, problems, problem_count: wrong, earlier } = report;
  const facts: [string, string][] = [
    [t("user.import.create"), formatNumber(create)],
    [t("user.import.change"), formatNumber(change)],
    [t("user.import.unchanged"), formatNumber(unchanged)],
    ...(added > 0 ? [[t("user.import.added"), formatQuota(added)] as [string, string]] : []),
    ...(taken > 0 ? [[t("user.import.taken"), formatQuota(taken)] as [string, string]] : []),
  ];
  return (
    <Result labelledBy={id} className="mb-4">
      <h3 id={id} className="mb-2 font-semibold">
        {wrong > 0
          ? t("user.import.wrong", { count: wrong, number: formatNumber(wrong) })
          : t(create + change > 0 ? "user.import.right" : "user.import.nothing")}
      </h3>
      <dl className="facts mb-3">
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd className="tabular-nums">{value}</dd>
          </div>
        ))}
      </dl>
      {earlier ? (
        <Notice tone="warning">
          {t("user.import.earlier")} <When at={earlier.created_at} isAbsolute />{" "}
          <a className="link" href={patchUrl("/user", { run: earlier.id })}>
            {t("user.import.earlierRun")}
          </a>
        </Notice>
      ) : null}
      {wrong > 0 ? <Problems problems={problems} wrong={wrong} /> : null}
    </Result>
  );
}

function sentenceOf(t: Translate, { code, params = {} }: Problem): string {
  return hasText(`failure.${code}`) ? t(`failure.${code}`, params) : code;
}

function Problems({ problems, wrong }: { problems: readonly Problem[]; wrong: number }) {
  const t = useT();
  const lineOf = ({ line }: Problem) => (line > 0 ? t("user.import.line", { line }) : t("user.import.whole"));
  const text = problems.map((each) => `${lineOf(each)}\t${sentenceOf(t, each)}`).join("\n");
  return (
    <>
      <p className="flex items-center gap-2 text-sm text-muted">
        {wrong > problems.length
          ? t("user.bulk.firstRefused", { number: formatNumber(problems.length) })
          : t("user.import.mendText")}
        <CopyButton text={text} label={t("user.bulk.copyRefused")} withText />
      </p>
      <ul className="mt-2 flex max-h-80 flex-col gap-1 overflow-auto text-[13px]" tabIndex={0}>
        {problems.map((each, at) => (
          // A line may have several, in the order of the file.
          <li key={`${each.line} ${at}`} className="flex gap-3">
            <span className="w-20 flex-none tabular-nums text-muted">{lineOf(each)}</span>
            <span className="min-w-0 wrap-anywhere">{sentenceOf(t, each)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
