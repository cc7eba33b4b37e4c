// Letters by the operator's SMTP server, as the SMTP options describe it.
// Refuses to send without a server, and to hand the server's own words to anybody but the log.
import { Failure, refuse } from "../shared/failures.ts";
import type { Deps } from "./deps.ts";

export interface Letter {
  to: string;
  subject: string;
  text: string;
  html?: string;
}

/** Implicit TLS whatever the switch says: that is what the port is for (RFC 8314). */
const TLS_PORT = 465;
const TIMEOUT_MS = 10_000;

export function canSendMail({ options }: Pick<Deps, "options">): boolean {
  return options.get("SMTPServer") !== "";
}

/** Resolves when the server took the letter; throws Failures `smtp_missing` and `mail_failed`. */
export async function sendMail({ options }: Pick<Deps, "options">, letter: Letter): Promise<void> {
  if (!canSendMail({ options })) throw refuse("smtp_missing");
  const account = options.get("SMTPAccount");
  const port = options.get("SMTPPort");
  // Loaded with the first letter: most starts send none, and it is a tenth of all code.
  const { createTransport } = await import("nodemailer");
  const transport = createTransport({
    host: options.get("SMTPServer"),
    port,
    secure: options.get("SMTPSSLEnabled") || port === TLS_PORT,
    ...(account === "" ? {} : { auth: { user: account, pass: options.get("SMTPToken") } }),
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    // A letter carries what is written here: nothing is read from files or addresses.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    await transport.sendMail({
      from: { name: options.get("SystemName"), address: options.get("SMTPFrom") || account },
      ...letter,
    });
  } catch (error) {
    throw new Failure("client", "mail_failed", { internal: String(error), cause: error });
  } finally {
    transport.close();
  }
}
