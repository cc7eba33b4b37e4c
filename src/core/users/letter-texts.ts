// The words of letters about accounts, in both languages.
// Refuses to tell a stranger more than the letter's own reader may know: who asked is never named.
import type { Language } from "../../shared/enums.ts";
import type { LetterWords } from "./letter-form.ts";

/** Minutes that codes and links are good for. */
const MINUTES = 10;

export function codeWords(language: Language, site: string, code: string): LetterWords {
  return language === "zh"
    ? {
        subject: `${site} 邮箱验证码`,
        lines: [`您正在 ${site} 验证邮箱，验证码为：`],
        code,
        remark: `验证码 ${MINUTES} 分钟内有效，只能使用一次。如果不是您本人操作，请忽略本邮件。`,
      }
    : {
        subject: `Your code for ${site}`,
        lines: [`Enter this code to confirm your email address at ${site}:`],
        code,
        remark: `The code works once, within ${MINUTES} minutes. If you did not ask for it, ignore this letter.`,
      };
}

/** To an address that has an account, when somebody wants to register with it. Links may be empty. */
export function alreadyWords(
  language: Language,
  site: string,
  urls: { login: string; reset: string },
): LetterWords {
  const isChinese = language === "zh";
  const links = [
    { label: isChinese ? "登录" : "Sign in", url: urls.login },
    { label: isChinese ? "重置密码" : "Reset the password", url: urls.reset },
  ].filter(({ url }) => url !== "");
  return isChinese
    ? {
        subject: `您在 ${site} 已有账户`,
        lines: ["有人想用这个邮箱注册，但它已经属于一个账户。您可以直接登录；忘记密码时可以重置。"],
        links,
        remark: "如果不是您本人操作，请忽略本邮件，账户没有任何变化。",
      }
    : {
        subject: `You already have an account at ${site}`,
        lines: [
          "Somebody wanted to register with this email address, but it belongs to an account already. Sign in, or reset the password if you forgot it.",
        ],
        links,
        remark: "If this was not you, ignore this letter: nothing about the account has changed.",
      };
}

export function resetWords(language: Language, site: string, url: string): LetterWords {
  return language === "zh"
    ? {
        subject: `重置 ${site} 的密码`,
        lines: ["打开下面的链接，确认后即可重置密码。"],
        links: [{ label: "重置密码", url }],
        remark: `链接 ${MINUTES} 分钟内有效，只能使用一次。如果不是您本人操作，请忽略本邮件，密码不会改变。`,
      }
    : {
        subject: `Reset your password at ${site}`,
        lines: ["Open this link and confirm to reset your password."],
        links: [{ label: "Reset the password", url }],
        remark: `The link works once, within ${MINUTES} minutes. If you did not ask for it, ignore this letter: the password stays as it is.`,
      };
}

/** After the deed. The link may be empty. */
export function passwordWasResetWords(language: Language, site: string, url: string): LetterWords {
  const links = url === "" ? [] : [{ label: language === "zh" ? "重置密码" : "Reset the password", url }];
  return language === "zh"
    ? {
        subject: `${site} 的密码已重置`,
        lines: ["您的密码刚刚通过邮件链接重置，所有设备都已退出登录，系统访问令牌已失效。"],
        links,
        remark: "如果不是您本人操作，请立即再次重置密码，并检查您的邮箱是否安全。",
      }
    : {
        subject: `Your password at ${site} was reset`,
        lines: [
          "Your password has just been reset by a link in a letter. Every device was signed out, and the system access token has ended.",
        ],
        links,
        remark:
          "If this was not you, reset it again at once, and make sure that nobody else reads your mail.",
      };
}

/** After the own password was changed in the console. The link may be empty. */
export function passwordChangedWords(language: Language, site: string, url: string): LetterWords {
  const links = url === "" ? [] : [{ label: language === "zh" ? "重置密码" : "Reset the password", url }];
  return language === "zh"
    ? {
        subject: `${site} 的密码已修改`,
        lines: ["您的账户密码刚刚被修改，其他设备都已退出登录。"],
        links,
        remark: "如果不是您本人操作，请立即重置密码，并检查登录设备。",
      }
    : {
        subject: `Your password at ${site} was changed`,
        lines: ["The password of your account has just been changed. Every other device was signed out."],
        links,
        remark: "If this was not you, reset the password at once and look at your devices.",
      };
}

/** After a way to prove oneself came or went. The link may be empty. */
export function factorWords(language: Language, site: string, change: string, url: string): LetterWords {
  const zh: Readonly<Record<string, string>> = {
    totp_added: "您的账户已启用两步验证。",
    totp_removed: "您的账户已停用两步验证。",
    passkey_added: "您的账户添加了一个通行密钥。",
    passkey_removed: "您的账户删除了一个通行密钥。",
    backup_renewed: "您的账户重新生成了备用码，旧的备用码已失效。",
    factors_reset: "管理员重置了您账户的两步验证或通行密钥，所有设备都已退出登录。",
  };
  const en: Readonly<Record<string, string>> = {
    totp_added: "Two-factor codes were switched on for your account.",
    totp_removed: "Two-factor codes were switched off for your account.",
    passkey_added: "A passkey was added to your account.",
    passkey_removed: "A passkey was removed from your account.",
    backup_renewed: "New backup codes were made for your account; the old ones have ended.",
    factors_reset:
      "An administrator reset the two-factor codes or passkeys of your account. Every device was signed out.",
  };
  const links =
    url === "" ? [] : [{ label: language === "zh" ? "查看账户安全" : "Look at the account", url }];
  return language === "zh"
    ? {
        subject: `${site} 账户安全变更`,
        lines: [zh[change] ?? ""],
        links,
        remark: "如果不是您本人操作，请立即修改密码并检查登录设备。",
      }
    : {
        subject: `Account security at ${site} changed`,
        lines: [en[change] ?? ""],
        links,
        remark: "If this was not you, change your password at once and look at your devices.",
      };
}

export function testWords(language: Language, site: string): LetterWords {
  return language === "zh"
    ? { subject: `${site} 测试邮件`, lines: [`${site} 的邮件设置可以使用。`] }
    : { subject: `Test letter from ${site}`, lines: [`The mail settings of ${site} work.`] };
}

/** A way in came or went. The link may be empty. */
export function identityWords(
  language: Language,
  site: string,
  change: { provider: string; account: string; isBound: boolean; url: string },
): LetterWords {
  const { provider, account, isBound, url } = change;
  const links = url === "" ? [] : [{ label: language === "zh" ? "查看账户安全" : "Review sign-in", url }];
  if (language === "zh")
    return {
      subject: isBound ? `${site} 账户已绑定 ${provider}` : `${site} 账户已解除绑定 ${provider}`,
      lines: [
        isBound
          ? `现在可以用 ${provider} 账户 ${account} 登录您的账户。`
          : `${provider} 账户 ${account} 不再能登录您的账户。`,
      ],
      links,
      remark: "如果不是您本人操作，请立即修改密码并检查绑定的账户。",
    };
  return {
    subject: isBound
      ? `${provider} was linked to your account at ${site}`
      : `${provider} was unlinked at ${site}`,
    lines: [
      isBound
        ? `The ${provider} account ${account} can sign in to your account from now on.`
        : `The ${provider} account ${account} can no longer sign in to your account.`,
    ],
    links,
    remark: "If this was not you, change your password at once and review the linked accounts.",
  };
}

/** To the address that an account had until now. `masked`: the new one, so that its owner knows it. The link may be empty. */
export function emailChangedWords(
  language: Language,
  site: string,
  { masked, url }: { masked: string; url: string },
): LetterWords {
  const links = url === "" ? [] : [{ label: language === "zh" ? "查看账户安全" : "Review the account", url }];
  return language === "zh"
    ? {
        subject: `${site} 账户的邮箱已更改`,
        lines: [`您的账户不再使用这个邮箱，今后的邮件将发送到 ${masked}。`],
        links,
        remark: "如果不是您本人操作，请立即登录修改密码，并联系管理员。",
      }
    : {
        subject: `The email address of your account at ${site} changed`,
        lines: [`Your account no longer uses this address. Letters go to ${masked} from now on.`],
        links,
        remark: "If this was not you, sign in and change your password at once, and write to the operator.",
      };
}
