// Letters by an SMTP server.
// Refuses to hand the server's own words to anybody but the log.
import { Failure } from "../shared/failures.ts";

export interface MailServer {
  host: string;
  port: number;
  /** TLS from the first byte; otherwise STARTTLS where the server offers it. */
  isTls: boolean;
  /** Empty: the server asks for no login. */
  account: string;
  password: string;
  from: { name: string; address: string };
}

export interface Letter {
  /** One address; whoever calls this has it from where it was checked. */
  to: string;
  subject: string;
  text: string;
  html?: string;
}

/** "Weir <site@mail.example>" as name and address; the name given is the site's where the text has none. */
export function senderOf(text: string, siteName: string): { name: string; address: string } {
  const [, name = "", address = ""] = /^(.*)<([^<>]+)>\s*$/.exec(text) ?? [];
  if (address === "") return { name: siteName, address: text.trim() };
  return { name: name.trim().replace(/^"(.*)"$/, "$1") || siteName, address: address.trim() };
}

/** Implicit TLS whatever the switch says: that is what the port is for (RFC 8314). */
const TLS_PORT = 465;
const TIMEOUT_MS = 10_000;

async function transportTo({ host, port, isTls, account, password }: MailServer) {
  // Loaded with the first letter: most starts send none, and it is a tenth of all code.
  const { createTransport } = await import("nodemailer");
  return createTransport({
    host,
    port,
    secure: isTls || port === TLS_PORT,
    ...(account === "" ? {} : { auth: { user: account, pass: password } }),
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    // A letter carries what is written here: nothing is read from files or addresses.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

/** Greeting, TLS and login, no letter; throws the server's own words, for operators only. */
export async function greetMailServer(server: MailServer): Promise<void> {
  const transport = await transportTo(server);
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}

/** Resolves when the server took the letter; throws a Failure `mail_failed`. */
export async function sendMail(server: MailServer, letter: Letter): Promise<void> {
  const transport = await transportTo(server);
  try {
    // As a text it would be read as a list: "a@x.example, b@y.example" are two receivers.
    const to = { name: "", address: letter.to };
    await transport.sendMail({ from: server.from, ...letter, to });
  } catch (error) {
    throw new Failure("client", "mail_failed", { internal: String(error), cause: error });
  } finally {
    transport.close();
  }
}
