// Notices and prices: where a warning goes, from which balance on, and whether unpriced models are accepted.
// Refuses thresholds of nothing and addresses that are none; the secret goes in and never comes back.
import { api, call } from "../../lib/api.ts";
import { status } from "../../lib/boot.ts";
import { useForm } from "../../lib/form.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../ui/feedback.tsx";
import { NumberField, SecretField, SelectField, SwitchField, TextField } from "../../ui/form.tsx";
import { Card, SaveRow } from "./card.tsx";

interface NoticeValues extends Record<string, unknown> {
  kind: string;
  threshold: number | undefined;
  mail: string;
  url: string;
  secret: string;
  acceptsUnpriced: boolean;
}

const PRESETS = [1, 5, 10, 50] as const;
const DEFAULT_THRESHOLD = 500_000;

function valuesOf(text: string): NoticeValues {
  let setting: Record<string, unknown> = {};
  try {
    setting = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
  } catch {
    // A setting that cannot be read starts anew.
  }
  const string = (name: string): string => (typeof setting[name] === "string" ? setting[name] : "");
  const threshold = setting["quota_warning_threshold"];
  return {
    kind: string("notify_type") || "email",
    threshold: typeof threshold === "number" ? threshold : DEFAULT_THRESHOLD,
    mail: string("notification_email"),
    url: string("webhook_url"),
    secret: "",
    acceptsUnpriced: setting["accept_unset_model_ratio_model"] === true,
  };
}

export function NoticeSettings({ setting, hasSecret }: { setting: string; hasSecret: boolean }) {
  const t = useT();
  const perUnit = status.peek().quota_per_unit || 500_000;
  const form = useForm<NoticeValues>({
    initial: valuesOf(setting),
    secrets: ["secret"],
    validate: (values) => ({
      ...(values.threshold === undefined || values.threshold <= 0
        ? { threshold: t("personal.badThreshold") }
        : {}),
      ...(values.kind === "webhook" && !/^https?:\/\/\S+$/.test(values.url.trim())
        ? { url: t("personal.badWebhook") }
        : {}),
      ...(values.kind === "email" &&
      values.mail.trim() !== "" &&
      !/^[^\s@]+@[^\s@]+$/.test(values.mail.trim())
        ? { mail: t("personal.badMail") }
        : {}),
    }),
  });
  const { values, set } = form;
  const save = async () => {
    try {
      const isSaved = await form.submit(async () => {
        await call(
          api.user.setting.put({
            notify_type: values.kind,
            quota_warning_threshold: values.threshold ?? 0,
            accept_unset_model_ratio_model: values.acceptsUnpriced,
            ...(values.kind === "webhook"
              ? { webhook_url: values.url.trim(), webhook_secret: values.secret }
              : { notification_email: values.mail.trim() }),
          }),
        );
      });
      if (!isSaved) return;
      form.reset({ ...values, secret: "" });
      toast({ text: t("common.saved") });
    } catch (error) {
      toastFailure(error);
    }
  };
  return (
    <Card id="notices" title={t("personal.notices")} note={t("personal.noticesNote")}>
      <form
        ref={form.element}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <SelectField
          form={form}
          name="kind"
          label={t("personal.noticeKind")}
          choices={[
            { value: "email", label: t("personal.kind.email") },
            { value: "webhook", label: t("personal.kind.webhook") },
          ]}
        />
        {values.kind === "webhook" ? (
          <>
            <TextField
              form={form}
              name="url"
              label={t("personal.webhookUrl")}
              hint={t("personal.webhookHint")}
              isRequired
              type="url"
              input={{ maxLength: 2048 }}
            />
            <SecretField form={form} name="secret" label={t("personal.webhookSecret")} isSet={hasSecret} />
          </>
        ) : (
          <TextField
            form={form}
            name="mail"
            label={t("personal.mail")}
            hint={t("personal.mailHint")}
            type="email"
            input={{ maxLength: 320 }}
          />
        )}
        <NumberField
          form={form}
          name="threshold"
          label={t("personal.threshold")}
          min={1}
          step={1}
          hint={t("personal.thresholdHint", { amount: formatQuota(values.threshold ?? 0) })}
        />
        <div
          className="flex flex-wrap gap-2 -mt-2 mb-4"
          role="group"
          aria-label={t("personal.thresholdPresets")}
        >
          {PRESETS.map((dollars) => (
            <button
              key={dollars}
              type="button"
              className="btn btn-sm btn-default"
              onClick={() => set("threshold", dollars * perUnit)}
            >
              ${dollars}
            </button>
          ))}
        </div>
        <SwitchField
          form={form}
          name="acceptsUnpriced"
          label={t("personal.acceptUnpriced")}
          hint={t("personal.acceptUnpricedHint")}
        />
        <SaveRow isBusy={form.isBusy} isDirty={form.isDirty} />
      </form>
    </Card>
  );
}
