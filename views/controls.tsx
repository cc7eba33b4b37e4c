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
        className="btn btn-ghost btn-square btn-sm"
        popoverTarget="menu-language"
        aria-haspopup="menu"
        aria-expanded="false"
        aria-label={t("shell.language")}
        title={t("shell.language")}
      >
        <Languages aria-hidden />
      </button>
      <ul
        id="menu-language"
        popover="auto"
        className="menu pop top-11.5 right-3"
        role="menu"
        data-menu=""
        aria-label={t("shell.language")}
      >
        {LANGUAGE_NAMES.map(([code, name]) => (
          <li key={code} role="none">
            <button
              type="button"
              role="menuitemradio"
              aria-checked={code === language}
              data-set-language={code}
              lang={code === "zh" ? "zh-CN" : "en"}
            >
              <span>{name}</span>
            </button>
          </li>
        ))}
      </ul>
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
        className="btn btn-ghost btn-square btn-sm"
        popoverTarget="menu-theme"
        aria-haspopup="menu"
        aria-expanded="false"
        aria-label={t("shell.theme")}
        title={t("shell.theme")}
      >
        <Sun aria-hidden className="dark:hidden" />
        <Moon aria-hidden className="hidden dark:block" />
      </button>
      <ul
        id="menu-theme"
        popover="auto"
        className="menu pop top-11.5 right-3"
        role="menu"
        data-menu=""
        aria-label={t("shell.theme")}
      >
        {modes.map(([mode, Icon]) => (
          <li key={mode} role="none">
            <button type="button" role="menuitemradio" aria-checked={mode === theme} data-set-theme={mode}>
              <Icon aria-hidden />
              <span>{t(`shell.theme.${mode}`)}</span>
            </button>
          </li>
        ))}
      </ul>
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
        className="btn btn-ghost btn-square btn-sm"
        popoverTarget="menu-account"
        aria-haspopup="menu"
        aria-expanded="false"
        aria-label={t("shell.account", { name })}
      >
        <span
          className="inline-flex size-6.5 items-center justify-center rounded-full bg-primary text-xs font-semibold text-primary-content"
          aria-hidden
        >
          {Array.from(name)[0]?.toUpperCase() ?? "?"}
        </span>
      </button>
      <ul id="menu-account" popover="auto" className="menu pop top-11.5 right-3" data-menu="">
        <li className="menu-title pt-1.5 pb-2 text-sm font-normal text-base-content">
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
        </li>
        <li />
        <li>
          <button type="button" data-sign-out="">
            <LogOut aria-hidden />
            <span>{t("shell.signOut")}</span>
          </button>
        </li>
      </ul>
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
