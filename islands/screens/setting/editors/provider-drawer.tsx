// The drawer of a sign-in provider that the operator defines: its server, what of an answer means what, who may come in.
// Refuses to save a policy that nobody can read; a secret that is set is kept unless another one is typed.
import { useState } from "react";
import { POLICY_OPS, parsePolicyText } from "../../../../src/shared/access-policy.ts";
import { api, call } from "../../../lib/api.ts";
import { status } from "../../../lib/boot.ts";
import { useForm } from "../../../lib/form.ts";
import type { Form } from "../../../lib/form.ts";
import { useT } from "../../../lib/i18n.ts";
import { toast, toastFailure } from "../../../lib/toasts.ts";
import { CopyButton } from "../../../ui/copy-button.tsx";
import { DrawerForm } from "../../../ui/drawer.tsx";
import {
  SecretField,
  Section,
  SelectField,
  SwitchField,
  TextAreaField,
  TextField,
} from "../../../ui/form.tsx";
import {
  PATH_FIELDS,
  PRESETS,
  providerBody,
  providerProblems,
  providerValues,
  verdictOf,
  withPreset,
} from "./provider-values.ts";
import type { CustomProvider, ProviderValues } from "./provider-values.ts";
import { maySwitchOff } from "../ways-in.ts";

export interface ProviderDrawerProps {
  /** Undefined: a new one. */
  row: CustomProvider | undefined;
  onClose: () => void;
  onSaved: () => void;
}

type ProviderForm = Form<ProviderValues>;

export default function ProviderDrawer({ row, onClose, onSaved }: ProviderDrawerProps) {
  const t = useT();
  const isNew = row === undefined;
  const form = useForm<ProviderValues>({
    initial: providerValues(row),
    secrets: ["client_secret"],
    validate(values) {
      const found = providerProblems(values, isNew);
      const policy = parsePolicyText(values.access_policy);
      return {
        ...Object.fromEntries(Object.entries(found).map(([name, key]) => [name, t(key ?? "")])),
        ...("problem" in policy
          ? { access_policy: t("failure.provider_policy_invalid", { at: policy.problem.at || "{}" }) }
          : {}),
      };
    },
  });
  const save = async (values: ProviderValues, changed: Partial<ProviderValues>) => {
    const providers = api["custom-oauth-provider"];
    if (isNew) await call(providers.post(providerBody(values)));
    else if (changed.enabled === false && !(await maySwitchOff(row.slug, row.name)))
      throw new DOMException("thought better of", "AbortError");
    else await call(providers({ id: row.slug }).put(providerBody(changed)));
    toast({ text: t("common.saved", { name: values.name }) });
    onSaved();
  };
  return (
    <DrawerForm
      form={form}
      isOpen
      isNew={isNew}
      width="wide"
      title={isNew ? t("editor.providers.new") : t("editor.providers.edit", { name: row.name })}
      saveLabel={isNew ? t("common.create") : t("common.save")}
      onClose={onClose}
      onSave={save}
    >
      <Basics form={form} isNew={isNew} />
      <Server form={form} isSecretSet={row?.client_secret_set ?? false} />
      <Section title={t("editor.providers.fields")} isFolded>
        {PATH_FIELDS.map((name) => (
          <TextField
            key={name}
            form={form}
            name={name}
            label={t(`editor.providers.field.${name}`)}
            isMono
            isRequired={name === "user_id_field"}
            input={{ autoComplete: "off", spellCheck: false }}
          />
        ))}
      </Section>
      <Access form={form} />
      <Section title={t("editor.providers.accounts")}>
        {(["allow_register", "link_verified_email", "skip_second_factor"] as const).map((name) => (
          <SwitchField
            key={name}
            form={form}
            name={name}
            label={t(`editor.providers.field.${name}`)}
            hint={t(`editor.providers.hint.${name}`)}
          />
        ))}
      </Section>
    </DrawerForm>
  );
}

function Basics({ form, isNew }: { form: ProviderForm; isNew: boolean }) {
  const t = useT();
  const { slug } = form.values;
  const base = (status.value.server_address || location.origin).replace(/\/+$/, "");
  const callback = `${base}/oauth/${slug.trim()}`;
  return (
    <>
      {isNew ? (
        <label className="mb-4 block">
          <span className="text-dense font-semibold">{t("editor.providers.preset")}</span>
          <select
            className="select mt-0.5"
            name="preset"
            value={form.values.preset}
            onChange={(event) => {
              for (const [name, value] of Object.entries(withPreset(form.values, event.target.value)))
                form.set(name, value);
            }}
          >
            <option value="">{t("editor.providers.noPreset")}</option>
            {PRESETS.map(({ id, label }) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      <SwitchField form={form} name="enabled" label={t("editor.providers.field.enabled")} />
      <TextField
        form={form}
        name="name"
        label={t("editor.providers.field.name")}
        hint={t("editor.providers.hint.name")}
        isRequired
        limit={60}
        input={{ autoComplete: "off" }}
      />
      {isNew ? (
        <TextField
          form={form}
          name="slug"
          label={t("editor.providers.field.slug")}
          hint={t("editor.providers.hint.slug")}
          isRequired
          isMono
          limit={32}
          input={{ autoComplete: "off", spellCheck: false }}
        />
      ) : null}
      {slug.trim() === "" ? null : (
        <div className="mb-6">
          <p className="text-dense font-semibold">{t("editor.providers.callback")}</p>
          <p className="flex items-center gap-1">
            <code className="mono text-dense wrap-anywhere">{callback}</code>
            <CopyButton
              text={callback}
              label={t("editor.providers.copyCallback", { name: form.values.name || slug })}
            />
          </p>
          <p className="text-xs text-muted">{t("editor.providers.callbackHint")}</p>
        </div>
      )}
      <TextField
        form={form}
        name="icon"
        label={t("editor.providers.field.icon")}
        hint={t("editor.providers.hint.icon")}
        input={{ autoComplete: "off", spellCheck: false }}
      />
    </>
  );
}

function Server({ form, isSecretSet }: { form: ProviderForm; isSecretSet: boolean }) {
  const t = useT();
  const [isAsking, setAsking] = useState(false);
  const isOidc = form.values.kind === "oidc";
  const discover = async () => {
    setAsking(true);
    try {
      const found = await call(
        api["custom-oauth-provider"].discovery.post({ issuer: form.values.issuer.trim() }),
      );
      form.set("issuer", found.issuer);
      form.set("authorization_endpoint", found.authorization_endpoint);
      form.set("token_endpoint", found.token_endpoint);
      form.set("user_info_endpoint", found.user_info_endpoint);
      if (found.has_pkce && form.values.pkce === "auto") form.set("pkce", "on");
      toast({ text: t("editor.providers.discovered", { issuer: found.issuer }) });
    } catch (error) {
      toastFailure(error, "discover");
    }
    setAsking(false);
  };
  const address = (name: "authorization_endpoint" | "token_endpoint" | "user_info_endpoint") => (
    <TextField
      key={name}
      form={form}
      name={name}
      type="url"
      label={t(`editor.providers.field.${name}`)}
      isRequired={!isOidc && form.values.enabled}
      isMono
      input={{ placeholder: "https://", autoComplete: "off", spellCheck: false }}
    />
  );
  return (
    <Section title={t("editor.providers.server")}>
      <SelectField
        form={form}
        name="kind"
        label={t("editor.providers.field.kind")}
        hint={t(`editor.providers.kind.${form.values.kind}`)}
        choices={[
          { value: "oidc", label: "OpenID Connect" },
          { value: "oauth2", label: "OAuth 2.0" },
        ]}
      />
      <TextField
        form={form}
        name="issuer"
        type="url"
        label={t("editor.providers.field.issuer")}
        hint={t("editor.providers.hint.issuer")}
        isRequired={isOidc && form.values.enabled}
        isMono
        input={{ placeholder: "https://", autoComplete: "off", spellCheck: false }}
      />
      <button
        type="button"
        className="btn btn-default btn-sm mb-4"
        disabled={isAsking || form.values.issuer.trim() === ""}
        aria-busy={isAsking}
        onClick={() => void discover()}
      >
        {t("editor.providers.discover")}
      </button>
      {isOidc ? (
        <p className="mb-4 text-xs text-muted">{t("editor.providers.oidcEndpoints")}</p>
      ) : (
        <>
          {address("authorization_endpoint")}
          {address("token_endpoint")}
          {address("user_info_endpoint")}
        </>
      )}
      <TextField
        form={form}
        name="client_id"
        label={t("editor.providers.field.client_id")}
        isRequired={form.values.enabled}
        isMono
        input={{ autoComplete: "off", spellCheck: false }}
      />
      <SecretField
        form={form}
        name="client_secret"
        label={t("editor.providers.field.client_secret")}
        isSet={isSecretSet}
      />
      <TextField
        form={form}
        name="scopes"
        label={t("editor.providers.field.scopes")}
        hint={t("editor.providers.hint.scopes")}
        isMono
        input={{ autoComplete: "off", spellCheck: false }}
      />
      <SelectField
        form={form}
        name="auth_style"
        label={t("editor.providers.field.auth_style")}
        choices={[0, 1, 2].map((value) => ({ value, label: t(`editor.providers.style.${value}`) }))}
      />
      <SelectField
        form={form}
        name="pkce"
        label="PKCE"
        choices={(["auto", "on", "off"] as const).map((value) => ({
          value,
          label: t(`editor.providers.pkce.${value}`),
        }))}
      />
    </Section>
  );
}

const EXAMPLE = '{"logic": "and", "conditions": [{"field": "groups", "op": "contains", "value": "staff"}]}';

function Access({ form }: { form: ProviderForm }) {
  const t = useT();
  const [claims, setClaims] = useState("");
  return (
    <Section title={t("editor.providers.access")}>
      <TextAreaField
        form={form}
        name="access_policy"
        label={t("editor.providers.field.access_policy")}
        hint={t("editor.providers.hint.access_policy", { ops: POLICY_OPS.join(", ") })}
        rows={6}
        isMono
        placeholder={EXAMPLE}
      />
      <TextField
        form={form}
        name="access_denied_message"
        label={t("editor.providers.field.access_denied_message")}
        hint={t("editor.providers.hint.access_denied_message", {
          names: "{{provider}} {{field}} {{op}} {{required}} {{current}} {{current.name}}",
        })}
        input={{ autoComplete: "off" }}
      />
      <label className="block">
        <span className="text-dense font-semibold">{t("editor.providers.claims")}</span>
        <textarea
          className="textarea mono mt-0.5"
          rows={4}
          spellCheck={false}
          placeholder='{"sub": "1", "groups": ["staff"]}'
          value={claims}
          onChange={(event) => setClaims(event.target.value)}
        />
      </label>
      <p className="mt-1 text-xs text-muted">{t("editor.providers.claimsHint")}</p>
      <VerdictLine values={form.values} claims={claims} />
    </Section>
  );
}

/** What a sign-in with the pasted claims would come to. */
function VerdictLine({ values, claims }: { values: ProviderValues; claims: string }) {
  const t = useT();
  const verdict = verdictOf(values, claims);
  return (
    <div className="mt-2 mb-4" role="status">
      {verdict.kind === "policy" && claims.trim() !== "" ? (
        <p className="text-error">{t("failure.provider_policy_invalid", { at: verdict.at || "{}" })}</p>
      ) : null}
      {verdict.kind === "claims" ? <p className="text-error">{t("editor.providers.claimsBroken")}</p> : null}
      {verdict.kind === "known" ? (
        <>
          <p className={`font-medium ${verdict.refusal || !verdict.subject ? "text-error" : "text-success"}`}>
            {verdict.refusal
              ? t("editor.providers.refused", { ...verdict.refusal, current: verdict.refusal.current || "–" })
              : t(verdict.subject ? "editor.providers.allowed" : "editor.providers.noSubject")}
          </p>
          {verdict.text ? <p className="mt-1 text-muted">{verdict.text}</p> : null}
          <dl className="facts mt-2">
            {(["subject", "login", "name", "email"] as const).map((name) => (
              <div key={name}>
                <dt>{t(`editor.providers.found.${name}`)}</dt>
                <dd className="wrap-anywhere">
                  {verdict[name] ?? "–"}
                  {name === "email" && verdict.email
                    ? ` (${t(verdict.isVerified ? "editor.providers.verified" : "editor.providers.unverified")})`
                    : ""}
                </dd>
              </div>
            ))}
          </dl>
        </>
      ) : null}
    </div>
  );
}
