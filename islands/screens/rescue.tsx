// The page of a link of `weir rescue`: one press signs root in.
// Refuses to act by being opened; the secret stands behind the # and so in no log of any server.
import { useState } from "react";
import { api, call, failureMessage } from "../lib/api.ts";
import { useT } from "../lib/i18n.ts";
import { leaveFor } from "../lib/leave.ts";
import { Notice } from "../ui/feedback.tsx";

export default function RescueScreen() {
  const t = useT();
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const press = async () => {
    const token = location.hash.slice(1);
    if (!/^[0-9a-f]{64}$/.test(token)) return setRefusal(t("rescue.broken"));
    setBusy(true);
    setRefusal("");
    try {
      await call(api.user.rescue.post({ token }));
      leaveFor("/personal?tab=security");
    } catch (error) {
      setRefusal(failureMessage(error));
      setBusy(false);
    }
  };
  return (
    <section className="w-full max-w-90">
      <h1 className="mb-4">{t("rescue.title")}</h1>
      {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
      <p className="mb-4">{t("rescue.text")}</p>
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
        {t("rescue.action")}
      </button>
    </section>
  );
}
