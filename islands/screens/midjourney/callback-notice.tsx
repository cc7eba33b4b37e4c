// Says that the upstream's callbacks are not accepted; the owner may switch them on here.
import { useSignals } from "@preact/signals-react/runtime";
import { Role } from "../../../src/shared/enums.ts";
import { api, call } from "../../lib/api.ts";
import { status, user } from "../../lib/boot.ts";
import { t as translate, useT } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { Notice } from "../../ui/feedback.tsx";

export function CallbackNotice() {
  const t = useT();
  useSignals();
  const canChange = (user.value?.role ?? 0) >= Role.root;
  return (
    <Notice
      tone="info"
      action={
        canChange ? (
          <button type="button" className="btn btn-sm btn-default" onClick={() => void setCallbacks(true)}>
            {t("midjourney.callback.enable")}
          </button>
        ) : undefined
      }
    >
      {t("midjourney.callback.off")}
    </Notice>
  );
}

async function setCallbacks(isOn: boolean): Promise<void> {
  try {
    await call(api.option.put({ key: "MjNotifyEnabled", value: String(isOn) }));
    status.value = { ...status.peek(), mj_notify_enabled: isOn };
    toast({
      key: "mj callback",
      text: translate(isOn ? "midjourney.callback.on" : "midjourney.callback.offAgain"),
      undo: () => setCallbacks(!isOn),
    });
  } catch (error) {
    toastFailure(error);
  }
}
