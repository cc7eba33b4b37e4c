// Password, system access token and the switch for single-key shortcuts.
// Refuses the old password as the new one, and to show a system token twice.
import { KeyRound } from "lucide-react";
import { useEffect, useState } from "react";
import { MAX_PASSWORD, MIN_PASSWORD } from "../../../src/shared/name-limits.ts";
import { api, call } from "../../lib/api.ts";
import { user } from "../../lib/boot.ts";
import { useForm } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { OWN_KEYS, readItem, removeItem, writeItem } from "../../lib/storage.ts";
import { confirm } from "../../ui/confirm.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { TextField } from "../../ui/form.tsx";
import { Card, SaveRow } from "./card.tsx";

interface PasswordValues extends Record<string, unknown> {
  original_password: string;
  password: string;
  again: string;
}

const EMPTY: PasswordValues = { original_password: "", password: "", again: "" };

export function PasswordCard({ hasPassword }: { hasPassword: boolean }) {
  const t = useT();
  const [isSet, setSet] = useState(hasPassword);
  const form = useForm<PasswordValues>({
    initial: EMPTY,
    secrets: ["original_password", "password", "again"],
    validate({ original_password: old, password, again }) {
      const length = Array.from(password).length;
      return {
        ...(isSet && old === "" ? { original_password: t("personal.oldPasswordMissing") } : {}),
        ...(password === ""
          ? { password: t("personal.newPasswordMissing") }
          : length < MIN_PASSWORD || length > MAX_PASSWORD
            ? { password: t("personal.badPassword") }
            : isSet && password === old
              ? { password: t("personal.samePassword") }
              : {}),
        ...(again === password ? {} : { again: t("personal.passwordsDiffer") }),
      };
    },
  });
  // Nothing is changed here, so nothing can be reverted.
  const plain = { ...form, isChanged: () => false };
  const save = async () => {
    try {
      const isSaved = await form.submit(async ({ original_password, password }) => {
        await call(api.user.self.put({ original_password, password }));
      });
      if (!isSaved) return;
      form.reset(EMPTY);
      setSet(true);
      toast({ text: t("personal.passwordChanged") });
    } catch (error) {
      toastFailure(error, "password");
    }
  };
  return (
    <Card id="password" title={t("personal.password")} note={t("personal.passwordNote")}>
      <form
        ref={form.element}
        noValidate
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {/* Tells password managers whose password this is. */}
        <input type="text" autoComplete="username" value={user.peek()?.username ?? ""} readOnly hidden />
        {isSet ? (
          <TextField
            form={plain}
            name="original_password"
            label={t("personal.oldPassword")}
            isRequired
            type="password"
            input={{ autoComplete: "current-password" }}
          />
        ) : null}
        <div className="grid grid-cols-[repeat(auto-fit,minmax(160px,1fr))] gap-x-4">
          <TextField
            form={plain}
            name="password"
            label={t("personal.newPassword")}
            hint={t("personal.newPasswordHint")}
            isRequired
            type="password"
            input={{ autoComplete: "new-password" }}
          />
          <TextField
            form={plain}
            name="again"
            label={t("personal.newPasswordAgain")}
            isRequired
            type="password"
            input={{ autoComplete: "new-password" }}
          />
        </div>
        <SaveRow isBusy={form.isBusy} isDirty={form.isDirty} label={t("personal.changePassword")} />
      </form>
    </Card>
  );
}

export function TokenCard({ hasToken }: { hasToken: boolean }) {
  const t = useT();
  const [isSet, setSet] = useState(hasToken);
  const [token, setToken] = useState("");
  const renew = async () => {
    if (isSet) {
      const yes = await confirm({
        title: t("personal.tokenAsk"),
        text: t("personal.tokenConsequence"),
        action: t("personal.tokenRenew"),
      });
      if (!yes) return;
    }
    try {
      setToken((await call(api.user.token.get())) as string);
      setSet(true);
    } catch (error) {
      toastFailure(error, "token");
    }
  };
  return (
    <Card id="token" title={t("personal.token")} note={t("personal.tokenNote")}>
      <div role="status">
        {token === "" ? null : (
          <Notice tone="success" onClose={() => setToken("")}>
            <p>{t("personal.tokenOnce")}</p>
            <p className="mt-1 flex items-center gap-2">
              <code className="mono break-all">{token}</code>
              <CopyButton text={token} label={t("personal.tokenCopy")} />
            </p>
          </Notice>
        )}
      </div>
      <div className="flex flex-wrap items-center gap-3">
        <button type="button" className="btn btn-default" onClick={() => void renew()}>
          <KeyRound aria-hidden size={16} />
          {t(isSet ? "personal.tokenRenew" : "personal.tokenMake")}
        </button>
        <span className="text-sm text-muted">{t(isSet ? "personal.tokenSet" : "personal.tokenNone")}</span>
      </div>
    </Card>
  );
}

/** Switches save at once. */
export function ShortcutsSwitch() {
  const t = useT();
  const [isOn, setOn] = useState(true);
  // The server cannot know what was stored here.
  useEffect(() => setOn(readItem(OWN_KEYS.shortcuts) !== "off"), []);
  return (
    <Card id="shortcuts" title={t("personal.keyboard")}>
      <label className="flex min-h-8 cursor-pointer items-center gap-4">
        <span className="grow">
          {t("personal.shortcuts")}
          <span className="block text-sm text-muted">{t("personal.shortcutsHint")}</span>
        </span>
        <input
          type="checkbox"
          role="switch"
          className="toggle"
          checked={isOn}
          onChange={(event) => {
            setOn(event.target.checked);
            if (event.target.checked) removeItem(OWN_KEYS.shortcuts);
            else writeItem(OWN_KEYS.shortcuts, "off");
          }}
        />
      </label>
    </Card>
  );
}
