// A real SMTP server on loopback: keeps the letters that it takes, decoded, and refuses when a test says so.
import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";

interface MailLetter {
  to: string[];
  subject: string;
  /** Every text of the letter, one after another. */
  text: string;
}

export interface MailServerStand {
  port: number;
  letters: MailLetter[];
  /** What it answers to every sender: 0 takes the letter. */
  refusal: number;
  /** The one address that it does not know. */
  refusedReceiver: string;
  close(): Promise<void>;
}

function decodedQuoted(text: string): string {
  const bytes = text
    .replaceAll(/=\r?\n/g, "")
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}

/** Words that are encoded (RFC 2047), and the space between two of them. */
function decodedHead(head: string): string {
  return head
    .replaceAll(/\r?\n[ \t]/g, " ")
    .replaceAll(/\?=\s+=\?/g, "?==?")
    .replaceAll(/=\?UTF-8\?([BQ])\?([^?]*)\?=/gi, (_, kind: string, word: string) =>
      kind.toUpperCase() === "B"
        ? Buffer.from(word, "base64").toString("utf8")
        : decodedQuoted(word.replaceAll("_", " ")),
    );
}

/** The text below a head that may say how it is encoded. */
function decodedPart(part: string): string {
  const end = part.search(/\r?\n\r?\n/);
  const [head, body] = end < 0 ? ["", part] : [part.slice(0, end), part.slice(end).trim()];
  if (/encoding: base64/i.test(head)) return Buffer.from(body, "base64").toString("utf8");
  return /encoding: quoted-printable/i.test(head) ? decodedQuoted(body) : body;
}

function letterOf(raw: string, to: string[]): MailLetter {
  const end = raw.search(/\r?\n\r?\n/);
  const head = raw.slice(0, end);
  const boundary = /boundary="([^"]+)"/.exec(head)?.[1];
  const parts = boundary === undefined ? [raw] : raw.slice(end).split(`--${boundary}`).slice(1, -1);
  const subject = /^Subject: (.*(?:\r?\n[ \t].*)*)/m.exec(head)?.[1] ?? "";
  return {
    to,
    subject: decodedHead(subject),
    text: parts.map((part) => decodedPart(part.trim())).join("\n"),
  };
}

export async function startMailServer(): Promise<MailServerStand> {
  const stand: MailServerStand = {
    port: 0,
    letters: [],
    refusal: 0,
    refusedReceiver: "",
    close: () => Promise.resolve(),
  };
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS", "AUTH"],
    logger: false,
    onMailFrom(_address, _session, done) {
      if (stand.refusal === 0) return done();
      done(Object.assign(new Error("no"), { responseCode: stand.refusal }));
    },
    onRcptTo({ address }, _session, done) {
      if (address !== stand.refusedReceiver) return done();
      done(Object.assign(new Error("unknown"), { responseCode: 550 }));
    },
    onData(stream, session, done) {
      const pieces: Buffer[] = [];
      stream.on("data", (piece: Buffer) => pieces.push(piece));
      stream.on("end", () => {
        const to = session.envelope.rcptTo.map(({ address }) => address);
        stand.letters.push(letterOf(Buffer.concat(pieces).toString("latin1"), to));
        done();
      });
    },
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  stand.port = (server.server.address() as AddressInfo).port;
  stand.close = () => new Promise((closed) => server.close(closed));
  return stand;
}
