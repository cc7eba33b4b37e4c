// Language, theme and account menus of the top bars: plain popovers that lite's shell code gives life to.
// Refuses to hide a choice behind a reload.
import { Languages, LogOut, Monitor, Moon, Sun } from "lucide-react";
import type { FrameProps } from "./frame.ts";

const LANGUAGE_NAMES = [
  ["zh", "简体中文"],
  ["en", "English"],
] as const;

export function LanguageMenu({ t, language }: Pick<FrameProps, "t" | "language">) {
  return (
    <>
      <button
        type="button"
        className="icon-button"
        popoverTarget="menu-language"
        aria-haspopup="menu"
        aria-expanded="false"
        aria-label={t("shell.language")}
        title={t("shell.language")}
      >
        <Languages aria-hidden />
      </button>
      <div
        id="menu-language"
        popover="auto"
        className="pop pop-top"
        role="menu"
        data-menu=""
        aria-label={t("shell.language")}
      >
        {LANGUAGE_NAMES.map(([code, name]) => (
          <button
            key={code}
            type="button"
            role="menuitemradio"
            className="pop-item"
            aria-checked={code === language}
            data-set-language={code}
            lang={code === "zh" ? "zh-CN" : "en"}
          >
            {name}
          </button>
        ))}
      </div>
    </>
  );
}

export function ThemeMenu({ t, theme }: Pick<FrameProps, "t" | "theme">) {
  const modes = [
    ["light", Sun],
    ["dark", Moon],
    ["system", Monitor],
  ] as const;
  return (
    <>
      <button
        type="button"
        className="icon-button"
        popoverTarget="menu-theme"
        aria-haspopup="menu"
        aria-expanded="false"
        aria-label={t("shell.theme")}
        title={t("shell.theme")}
      >
        <Sun aria-hidden className="dark-hidden" />
        <Moon aria-hidden className="light-hidden" />
      </button>
      <div
        id="menu-theme"
        popover="auto"
        className="pop pop-top"
        role="menu"
        data-menu=""
        aria-label={t("shell.theme")}
      >
        {modes.map(([mode, Icon]) => (
          <button
            key={mode}
            type="button"
            role="menuitemradio"
            className="pop-item"
            aria-checked={mode === theme}
            data-set-theme={mode}
          >
            <Icon aria-hidden />
            {t(`shell.theme.${mode}`)}
          </button>
        ))}
      </div>
    </>
  );
}

export function AccountMenu({ t, visitor }: Pick<FrameProps, "t" | "visitor">) {
  if (!visitor) return null;
  const name = visitor.displayName || visitor.username;
  const role = visitor.role >= 100 ? "root" : visitor.role >= 10 ? "admin" : "user";
  return (
    <>
      <button
        type="button"
        className="icon-button"
        popoverTarget="menu-account"
        aria-haspopup="menu"
        aria-expanded="false"
        aria-label={t("shell.account", { name })}
      >
        <span className="avatar-mark" aria-hidden>
          {Array.from(name)[0]?.toUpperCase() ?? "?"}
        </span>
      </button>
      <div id="menu-account" popover="auto" className="pop pop-top" data-menu="">
        <div className="pop-head">
          <b>{name}</b>
          <div className="text-muted text-xs">
            {visitor.username === name ? null : `${visitor.username} · `}
            {t(`common.role.${role}`)}
          </div>
          <div className="mt-2 flex justify-between gap-6 text-[13px]">
            <span className="text-muted">{t("shell.balance")}</span>
            <b className="tabular-nums" data-balance="">
              {visitor.balance}
            </b>
          </div>
        </div>
        <hr />
        <button type="button" className="pop-item" data-sign-out="">
          <LogOut aria-hidden />
          {t("shell.signOut")}
        </button>
      </div>
    </>
  );
}

/** The mark of the product, or the operator's own logo. */
export function Brand({ site, href }: Pick<FrameProps, "site"> & { href: string }) {
  return (
    <a href={href} className="brand">
      <img src={site.logo || "/logo.svg"} alt="" width={24} height={24} />
      <span>{site.name}</span>
    </a>
  );
}
