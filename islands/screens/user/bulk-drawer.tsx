// The sheet before something is done to many accounts: what will happen, to how many, and what it needs.
// Refuses to begin without naming the number; what comes of it is shown by run-drawer.tsx.
import { api, call } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import type { Form } from "../../lib/form.ts";
import { formatNumber, formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { DrawerForm } from "../../ui/drawer.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { Section, SelectField, TextAreaField, TextField } from "../../ui/form.tsx";
import { MoneyField } from "../../ui/money-field.tsx";
import { bulkBody, bulkProblems, countOf, NOTHING } from "./bulk-values.ts";
import type { BulkAction, BulkValues, BulkWhom } from "./bulk-values.ts";
import { MODES } from "./values.ts";

const MAX_REASON = 200;
const MAX_SUBJECT = 200;
/** More names than these are a number. */
const NAMES_SHOWN = 8;

export interface BulkDrawerProps {
  action: BulkAction;
  whom: BulkWhom;
  groups: readonly string[];
  onClose: () => void;
  /** With the id of the run. */
  onStarted: (run: number) => void;
}

export default function BulkDrawer({ action, whom, groups, onClose, onStarted }: BulkDrawerProps) {
  const t = useT();
  const count = countOf(whom);
  const number = formatNumber(count);
  const form = useForm<BulkValues>({
    initial: NOTHING,
    validate: (values) =>
      Object.fromEntries(
        Object.entries(bulkProblems(action, values)).map(([name, key = ""]) => [name, t(key)]),
      ),
  });
  return (
    <DrawerForm
      form={{ ...form, isChanged: () => false }}
      isOpen
      isNew
      width="peek"
      title={t(`user.bulk.${action}`)}
      saveLabel={t(`user.bulk.do.${action}`, { count, number })}
      onClose={onClose}
      onSave={async (values) => {
        const { id } = await call(api.user.bulk.post(bulkBody(action, values, whom)));
        onStarted(id);
      }}
    >
      <p className="mb-1 text-[15px]">{sentence(action, form.values, count)}</p>
      <Names whom={whom} />
      {action === "credit" ? <CreditFields form={form} /> : null}
      {action === "group" ? (
        <SelectField
          form={form}
          name="group"
          label={t("user.group")}
          isRequired
          choices={[
            { value: "", label: t("table.choose") },
            ...groups.map((name) => ({ value: name, label: name })),
          ]}
        />
      ) : null}
      {action === "letter" ? <LetterFields form={form} /> : null}
      {action === "credit" || action === "letter" ? null : (
        <TextField
          form={form}
          name="reason"
          label={t("user.bulk.reason")}
          hint={t("user.bulk.reasonHint")}
          limit={MAX_REASON}
          input={{ autoComplete: "off" }}
        />
      )}
      <Notice tone="info">{t("user.bulk.leftOut")}</Notice>
    </DrawerForm>
  );

  /** What will happen, with its number; for a credit also what it costs in all. */
  function sentence(what: BulkAction, { mode, amount }: BulkValues, of: number): string {
    if (what !== "credit" || amount === undefined || !Number.isSafeInteger(amount * of))
      return t(`user.bulk.say.${what}`, { count: of, number });
    return t(`user.bulk.say.credit.${mode}`, {
      count: of,
      number,
      each: formatQuota(amount),
      sum: formatQuota(amount * of),
    });
  }
}

function Names({ whom }: { whom: BulkWhom }) {
  const t = useT();
  if (!("rows" in whom)) return <p className="mb-4 text-sm text-muted">{t("user.bulk.byFilter")}</p>;
  const names = whom.rows.slice(0, NAMES_SHOWN).map(({ username }) => username);
  const more = whom.rows.length - names.length;
  return (
    <p className="mb-4 text-sm wrap-anywhere text-muted">
      {names.join(", ")}
      {more > 0 ? ` ${t("user.bulk.moreNames", { number: formatNumber(more) })}` : ""}
    </p>
  );
}

function CreditFields({ form }: { form: Form<BulkValues> }) {
  const t = useT();
  return (
    <>
      <fieldset className="mb-4">
        <legend className="text-dense font-semibold">{t("user.quotaMode")}</legend>
        <div className="join mt-1">
          {MODES.map((each) => (
            <input
              key={each}
              type="radio"
              name="mode"
              className="btn btn-sm join-item"
              aria-label={t(`user.mode.${each}`)}
              checked={form.values.mode === each}
              onChange={() => form.set("mode", each)}
            />
          ))}
        </div>
      </fieldset>
      <MoneyField form={form} name="amount" label={t("user.bulk.amount")} isRequired hasFocus />
      <TextField
        form={form}
        name="reason"
        label={t("user.reason")}
        hint={t("user.reasonHint")}
        isRequired
        limit={MAX_REASON}
        input={{ autoComplete: "off" }}
      />
    </>
  );
}

/** In both languages: each account reads its own, and the other one where its own was not written. */
function LetterFields({ form }: { form: Form<BulkValues> }) {
  const t = useT();
  return (
    <>
      <p className="mb-3 text-sm text-muted">{t("user.bulk.letterHint")}</p>
      {(["zh", "en"] as const).map((language) => (
        <Section key={language} title={t(`user.bulk.language.${language}`)}>
          <TextField
            form={form}
            name={`${language}Subject`}
            label={t("user.bulk.subject")}
            limit={MAX_SUBJECT}
            input={{ autoComplete: "off" }}
          />
          <TextAreaField form={form} name={`${language}Text`} label={t("user.bulk.text")} rows={5} />
        </Section>
      ))}
    </>
  );
}
