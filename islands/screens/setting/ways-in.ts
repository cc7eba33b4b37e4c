// Before a way in goes (a switch off, another host, a provider deleted): who would be left outside, told by the server.
// Refuses to go on without somebody's word where there is anybody; where root itself would be locked out, the server does.
import { api, call } from "../../lib/api.ts";
import { t } from "../../lib/i18n.ts";
import { confirm } from "../../ui/confirm.tsx";

interface Loss {
  accounts_without_sign_in: number;
  passkeys_orphaned: number;
}

/** In words; empty: nobody loses anything. */
function lossText({ accounts_without_sign_in: accounts, passkeys_orphaned: keys }: Loss): string {
  return [
    ...(accounts > 0 ? [t("setting.waysAccounts", { count: accounts })] : []),
    ...(keys > 0 ? [t("setting.waysPasskeys", { count: keys })] : []),
  ].join(" ");
}

/** Whether an option may get that text. `name`: what people call it. Throws what the server refuses. */
export async function mayWrite(key: string, text: string, name: string): Promise<boolean> {
  const loss = lossText(await call(api.option.ways_in.get({ query: { key, value: text } })));
  if (key === "PasswordLoginEnabled")
    return confirm({
      title: t("setting.passwordOff"),
      text: [t("setting.passwordOffText"), loss].filter(Boolean).join(" "),
      action: t("setting.passwordOffAction"),
      isDanger: true,
    });
  if (loss === "") return true;
  const isMove = key === "ServerAddress";
  return confirm({
    title: t(isMove ? "setting.waysMove" : "setting.waysOff", { name }),
    text: loss,
    action: t(isMove ? "setting.waysMoveAction" : "setting.passwordOffAction"),
    isDanger: true,
  });
}

/** What goes with a provider of the operator's own; empty: nothing. Throws what the server refuses. */
export async function providerLossText(slug: string): Promise<string> {
  return lossText(await call(api["custom-oauth-provider"]({ id: slug }).ways_in.get()));
}

/** Whether it may be switched off. */
export async function maySwitchOff(slug: string, name: string): Promise<boolean> {
  const text = await providerLossText(slug);
  if (text === "") return true;
  const [title, action] = [t("setting.waysOff", { name }), t("setting.passwordOffAction")];
  return confirm({ title, text, action, isDanger: true });
}
