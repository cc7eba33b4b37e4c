// A forgotten password, second half: the link's page. One press gives a new password, which is shown and copied.
// Refuses to act by being opened: scanners of letters follow every link. The token leaves the address after its use.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useRef, useState } from "react";
import { api, call, failureMessage } from "../lib/api.ts";
import { useT } from "../lib/i18n.ts";
import { setQuery, useQuery } from "../lib/url-state.ts";
import { CopyButton, copyText } from "../ui/copy-button.tsx";
import { Notice } from "../ui/feedback.tsx";

export default function UserResetScreen() {
  const t = useT();
  useSignals();
  const query = useQuery();
  const [password, setPassword] = useState("");
  return (
    <section className="w-full max-w-90">
      <h1 className="mb-4">{t("reset.confirmTitle")}</h1>
      {password !== "" ? (
        <NewPassword password={password} />
      ) : query.email && query.token ? (
        <Confirm email={query.email} token={query.token} onDone={setPassword} />
      ) : (
        <>
          <Notice tone="error">{t("reset.linkBroken")}</Notice>
          <a className="btn btn-default w-full" href="/reset">
            {t("reset.askAgain")}
          </a>
        </>
      )}
    </section>
  );
}

function Confirm({
  email,
  token,
  onDone,
}: {
  email: string;
  token: string;
  onDone: (password: string) => void;
}) {
  const t = useT();
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const press = async () => {
    setBusy(true);
    setRefusal("");
    try {
      const password = await call(api.user.reset.post({ email, token }));
      onDone(password);
      setQuery({ email: undefined, token: undefined }, { replace: true });
      await copyText(password);
    } catch (error) {
      setRefusal(failureMessage(error));
      setBusy(false);
    }
  };
  return (
    <>
      {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
      <p className="mb-4 break-words">{t("reset.confirmText", { email })}</p>
      <button
        type="button"
        className="btn btn-primary w-full"
        aria-busy={isBusy}
        aria-disabled={isBusy}
        onClick={() => {
          if (!isBusy) void press();
        }}
      >
        {isBusy ? <span className="loading loading-spinner loading-xs" aria-hidden /> : null}
        {t("reset.confirm")}
      </button>
      {refusal === "" ? null : (
        <p className="mt-4 text-sm">
          <a className="link" href="/reset">
            {t("reset.askAgain")}
          </a>
        </p>
      )}
    </>
  );
}

function NewPassword({ password }: { password: string }) {
  const t = useT();
  const place = useRef<HTMLDivElement>(null);
  // The button that was pressed is gone: readers and keyboards go on here.
  useEffect(() => place.current?.focus(), []);
  return (
    <div ref={place} tabIndex={-1} className="outline-none">
      <Notice tone="success">{t("reset.done")}</Notice>
      <p className="mb-4 flex items-center gap-2 rounded-field border border-base-300 px-3 py-2">
        <code className="mono grow text-lg select-all" data-new-password>
          {password}
        </code>
        <CopyButton text={password} label={t("reset.copy")} />
      </p>
      <a className="btn btn-primary w-full" href="/login?next=%2Fpersonal">
        {t("reset.signIn")}
      </a>
      <p className="mt-2 text-sm text-muted">{t("reset.change")}</p>
    </div>
  );
}
