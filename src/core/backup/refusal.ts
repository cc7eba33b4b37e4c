// Why a backup was not made or not taken, by code: the sentences stand in locales/*/backup.json, in both languages.
import enTexts from "../../../locales/en/backup.json" with { type: "json" };
import zhTexts from "../../../locales/zh/backup.json" with { type: "json" };
import type { Language } from "../../shared/enums.ts";

const TEXTS: Readonly<Record<Language, Readonly<Record<RefusalCode, string>>>> = { zh: zhTexts, en: enTexts };

export type RefusalCode = keyof typeof enTexts;

/** What the sentence names. */
export type RefusalParams = Readonly<Record<string, string | number>>;

/** A refusal as it travels: from the command to the server that started it, and into `--json`. */
export interface Refusal {
  code: RefusalCode;
  params: RefusalParams;
}

/** Thrown inside; the command prints its sentence and ends with 1. */
export class BackupRefused extends Error implements Refusal {
  constructor(
    readonly code: RefusalCode,
    readonly params: RefusalParams = {},
  ) {
    super(refusalText({ code, params }, "en"));
  }
}

/** The sentence, without a full stop. */
export function refusalText({ code, params }: Refusal, language: Language): string {
  return TEXTS[language][code].replace(/\{\{(\w+)\}\}/g, (_, hole: string) => String(params[hole] ?? ""));
}

/** Of what another process printed. */
export function isRefusal(value: unknown): value is Refusal {
  const { code, params } = (value ?? {}) as Partial<Refusal>;
  return typeof code === "string" && Object.hasOwn(enTexts, code) && typeof params === "object";
}
