// Notices: where a warning goes and from which balance on, with a test that really sends one. And the price preference.
// Refuses thresholds of nothing and addresses that are none; the secret goes in and never comes back.
import { Send } from "lucide-react";
import { useState } from "react";
import { api, call } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import type { Errors, Form } from "../../lib/form.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { SecretField, TextField } from "../../ui/form.tsx";
import { confirm } from "../../ui/confirm.tsx";
import { MoneyField } from "../../ui/money-field.tsx";
import { Card, SaveRow } from "./card.tsx";

interface NoticeValues extends Record<string, unknown> {
  kind: string;
  threshold: number | undefined;
  mail: string;
  url: string;
  secret: string;
}

/** The specification's choices, in quota units. */
const PRESETS = [100_000, 500_000, 1_000_000, 5_000_000] as const;
const KINDS = ["email", "webhook"] as const;

type Setting = Record<string, unknown>;

export function settingOf(text: string): Setting {
  try {
    const value: unknown = JSON.parse(text || "{}");
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Setting) : {};
  } catch {
    // A setting that cannot be read starts anew.
    return {};
  }
}

function valuesOf(setting: Setting, thresholdInForce: number): NoticeValues {
  const string = (name: string): string => (typeof setting[name] === "string" ? setting[name] : "");
  return {
    kind: string("notify_type") || "email",
    // Where the site warns nobody, there is nothing to begin with.
    threshold: thresholdInForce > 0 ? thresholdInForce : undefined,
    mail: string("notification_email"),
    url: string("webhook_url"),
    secret: "",
  };
}

function bodyOf(values: NoticeValues) {
  return {
    notify_type: values.kind,
    quota_warning_threshold: values.threshold ?? 0,
    ...(values.kind === "webhook"
      ? {
          webhook_url: values.url.trim(),
          // Nothing typed keeps what is set; only the button below removes it.
          ...(values.secret === "" ? {} : { webhook_secret: values.secret }),
        }
      : { notification_email: values.mail.trim() }),
  };
}

export interface NoticesCardProps {
  setting: Setting;
  hasSecret: boolean;
  /** Own or the site's, in quota units; 0: never. */
  thresholdInForce: number;
  /** The account's own address. */
  email: string;
  /** What the other card says now: both are one setting. */
  acceptsUnpriced: () => boolean;
}

function problemsOf(t: Translate, { kind, threshold, url, mail }: NoticeValues): Errors<NoticeValues> {
  return {
    ...(threshold === undefined || !(threshold > 0) ? { threshold: t("personal.badThreshold") } : {}),
    ...(kind === "webhook" && !isSecureUrl(url) ? { url: t("personal.badWebhook") } : {}),
    ...(kind === "email" && mail.trim() !== "" && !/^[^\s@]+@[^\s@]+$/.test(mail.trim())
      ? { mail: t("personal.badMail") }
      : {}),
  };
}

/** Saves the notices; keeps in mind whether a secret is set. */
function useNotices({ setting, hasSecret, thresholdInForce, acceptsUnpriced }: NoticesCardProps) {
  const t = useT();
  const [isSecretSet, setSecretSet] = useState(hasSecret);
  const [hasOwnThreshold, setOwnThreshold] = useState(typeof setting["quota_warning_threshold"] === "number");
  const form = useForm<NoticeValues>({
    initial: valuesOf(setting, thresholdInForce),
    secrets: ["secret"],
    validate: (values) => problemsOf(t, values),
  });
  const { values } = form;
  const save = async () => {
    try {
      const isSaved = await form.submit(async (now) => {
        await call(
          api.user.setting.put({ ...bodyOf(now), accept_unset_model_ratio_model: acceptsUnpriced() }),
        );
      });
      if (!isSaved) return;
      // The secret of the other kind is dropped with it.
      setSecretSet(values.kind === "webhook" && (isSecretSet || values.secret !== ""));
      setOwnThreshold(true);
      form.reset({ ...values, secret: "" });
      toast({ text: t("common.saved") });
    } catch (error) {
      toastFailure(error, "notices");
    }
  };
  const removeSecret = async () => {
    const isSure = await confirm({
      title: t("personal.secretRemoveTitle"),
      text: t("personal.secretRemoveText"),
      action: t("personal.secretRemove"),
    });
    if (!isSure) return;
    try {
      const isSaved = await form.submit(async (now) => {
        const body = { ...bodyOf({ ...now, secret: "" }), webhook_secret: "" };
        await call(api.user.setting.put({ ...body, accept_unset_model_ratio_model: acceptsUnpriced() }));
      });
      if (!isSaved) return;
      setSecretSet(false);
      setOwnThreshold(true);
      form.reset({ ...values, secret: "" });
      toast({ text: t("personal.secretRemoved") });
    } catch (error) {
      toastFailure(error, "notices");
    }
  };
  return { form, isSecretSet, hasOwnThreshold, save, removeSecret };
}

export function NoticesCard(props: NoticesCardProps) {
  const t = useT();
  const { form, isSecretSet, hasOwnThreshold, save, removeSecret } = useNotices(props);
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
        <KindField form={form} />
        {form.values.kind === "webhook" ? (
          <WebhookFields form={form} isSecretSet={isSecretSet} onRemove={() => void removeSecret()} />
        ) : (
          <MailField form={form} email={props.email} />
        )}
        <MoneyField
          form={form}
          name="threshold"
          label={t("personal.threshold")}
          isRequired
          presets={PRESETS}
          presetsLabel={t("personal.thresholdPresets")}
        />
        {hasOwnThreshold ? null : <SiteThreshold quota={props.thresholdInForce} />}
        <SaveRow isBusy={form.isBusy} isDirty={form.isDirty}>
          <TestButton form={form} />
        </SaveRow>
      </form>
    </Card>
  );
}

/** What is in force as long as one has chosen nothing. */
function SiteThreshold({ quota }: { quota: number }) {
  const t = useT();
  return (
    <p className="-mt-2 mb-4 text-sm text-muted">
      {quota > 0
        ? t("personal.thresholdOfSite", { amount: formatQuota(quota) })
        : t("personal.thresholdOfNobody")}
    </p>
  );
}

type NoticeForm = Form<NoticeValues>;

function KindField({ form }: { form: NoticeForm }) {
  const t = useT();
  return (
    <fieldset className="mb-4">
      <legend className="text-dense font-semibold">{t("personal.noticeKind")}</legend>
      <div className="join mt-1">
        {KINDS.map((kind) => (
          <input
            key={kind}
            type="radio"
            name="kind"
            className="btn btn-sm join-item"
            aria-label={t(`personal.kind.${kind}`)}
            checked={form.values.kind === kind}
            onChange={() => form.set("kind", kind)}
          />
        ))}
      </div>
    </fieldset>
  );
}

function WebhookFields({
  form,
  isSecretSet,
  onRemove,
}: {
  form: NoticeForm;
  isSecretSet: boolean;
  onRemove: () => void;
}) {
  const t = useT();
  return (
    <>
      <TextField
        form={form}
        name="url"
        label={t("personal.webhookUrl")}
        hint={t("personal.webhookHint")}
        isRequired
        type="url"
        isMono
        input={{ maxLength: 2048, placeholder: "https://", autoComplete: "off", spellCheck: false }}
      />
      <SecretField
        form={form}
        name="secret"
        label={t("personal.webhookSecret")}
        hint={t(isSecretSet ? "personal.webhookSecretKept" : "personal.webhookSecretHint")}
        isSet={isSecretSet}
      />
      {isSecretSet ? (
        <button type="button" className="btn btn-default btn-sm -mt-2 mb-4" onClick={onRemove}>
          {t("personal.secretRemove")}
        </button>
      ) : null}
    </>
  );
}

function MailField({ form, email }: { form: NoticeForm; email: string }) {
  const t = useT();
  return (
    <TextField
      form={form}
      name="mail"
      label={t("personal.mail")}
      hint={email === "" ? t("personal.mailNeeded") : t("personal.mailHint", { email })}
      type="email"
      input={{ maxLength: 320, placeholder: email, autoComplete: "email" }}
    />
  );
}

/** Sends a notice to what is typed, saved or not. */
function TestButton({ form }: { form: NoticeForm }) {
  const t = useT();
  const { values } = form;
  const [isTesting, setTesting] = useState(false);
  const test = async () => {
    const problems = Object.entries(problemsOf(t, values));
    for (const [name, text] of problems) form.fail(name, text ?? "");
    if (problems.length > 0) return;
    setTesting(true);
    try {
      await call(api.user.setting.test.post(bodyOf(values)));
      toast({ key: "notices", text: t(`personal.tested.${values.kind}`) });
    } catch (error) {
      toastFailure(error, "notices");
    } finally {
      setTesting(false);
    }
  };
  return (
    <button
      type="button"
      className="btn btn-default"
      disabled={form.isBusy || isTesting}
      aria-busy={isTesting}
      onClick={() => void test()}
    >
      <Send aria-hidden size={16} />
      {t("personal.test")}
    </button>
  );
}

function isSecureUrl(text: string): boolean {
  try {
    return new URL(text.trim()).protocol === "https:";
  } catch {
    return false;
  }
}

/** A switch: it saves at once, with a way back. */
export function PricesCard({
  initial,
  onChange,
}: {
  initial: boolean;
  onChange: (accepts: boolean) => void;
}) {
  const t = useT();
  const [accepts, setAccepts] = useState(initial);
  const save = async (next: boolean, isUndo = false) => {
    setAccepts(next);
    onChange(next);
    try {
      await call(api.user.setting.put({ accept_unset_model_ratio_model: next }));
      if (!isUndo)
        toast({
          key: "prices",
          text: t(next ? "personal.nowAccepts" : "personal.nowRefuses"),
          undo: () => save(!next, true),
        });
    } catch (error) {
      setAccepts(!next);
      onChange(!next);
      toastFailure(error, "prices");
    }
  };
  return (
    <Card id="prices" title={t("personal.prices")}>
      <label className="flex min-h-8 cursor-pointer items-center gap-4">
        <span className="grow">
          {t("personal.acceptUnpriced")}
          <span className="block text-sm text-muted">{t("personal.acceptUnpricedHint")}</span>
        </span>
        <input
          type="checkbox"
          role="switch"
          className="toggle"
          checked={accepts}
          onChange={(event) => void save(event.target.checked)}
        />
      </label>
    </Card>
  );
}
