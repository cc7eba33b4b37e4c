// A button that sends a letter by what is saved of the mail server, and says what came of it.
import { useState } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { useT } from "../../../lib/i18n.ts";

export default function MailTest() {
  const t = useT();
  const [to, setTo] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [said, setSaid] = useState<{ text: string; isFine: boolean }>();
  const send = async () => {
    setBusy(true);
    setSaid(undefined);
    try {
      const { address } = await call(api.option.letter.post({ to: to.trim() }));
      setSaid({ text: t("editor.letter.sent", { address }), isFine: true });
    } catch (error) {
      setSaid({ text: failureMessage(error), isFine: false });
    }
    setBusy(false);
  };
  return (
    <div className="setting-line setting-columns">
      <div className="min-w-0">
        <p className="font-medium" id="letter-name">
          {t("editor.letter.title")}
        </p>
        <p className="setting-help">{t("editor.letter.help")}</p>
      </div>
      <div className="min-w-0 max-sm:mt-2">
        <div className="flex gap-2">
          <input
            type="email"
            className="input"
            aria-labelledby="letter-name"
            placeholder={t("editor.letter.own")}
            autoComplete="email"
            value={to}
            onChange={(event) => setTo(event.target.value)}
          />
          <button
            type="button"
            className="btn btn-default"
            disabled={isBusy}
            aria-busy={isBusy}
            onClick={() => void send()}
          >
            {t("editor.letter.send")}
          </button>
        </div>
        <p
          role="status"
          className={`mt-1 min-h-5 text-xs wrap-anywhere ${said?.isFine === false ? "text-error" : "text-muted"}`}
        >
          {said?.text}
        </p>
      </div>
    </div>
  );
}
