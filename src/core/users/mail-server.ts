// The operator's mail server as the SMTP options describe it.
import { senderOf } from "../../net/mail.ts";
import type { MailServer } from "../../net/mail.ts";
import type { Deps } from "../deps.ts";

/** Undefined where none is named, or nobody who sends. */
export function mailServer({ options }: Pick<Deps, "options">): MailServer | undefined {
  const host = options.get("SMTPServer");
  const account = options.get("SMTPAccount");
  const sender = options.get("SMTPFrom") || account;
  if (host === "" || sender === "") return undefined;
  return {
    host,
    port: options.get("SMTPPort"),
    isTls: options.get("SMTPSSLEnabled"),
    account,
    password: options.get("SMTPToken"),
    from: senderOf(sender, options.get("SystemName")),
  };
}
