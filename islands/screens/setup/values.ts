// What the wizard asks for, what is wrong with it, and how good a password is.
// Refuses what the server would refuse, so that the wizard finds it on the step where it was typed.
import type { Errors } from "../../lib/form.ts";
import type { Translate } from "../../lib/i18n.ts";

export interface SetupData {
  databaseType: "sqlite" | "postgres";
  databaseVersion: string;
  rootExists: boolean;
  /** A site is being moved in. */
  isMoving: boolean;
}

export const MODES = ["external", "self", "demo"] as const;

export interface SetupValues extends Record<string, unknown> {
  username: string;
  password: string;
  confirmPassword: string;
  mode: (typeof MODES)[number];
}

const MAX_USERNAME_CHARS = 12;
const MIN_PASSWORD_CHARS = 8;
/** From here on a phrase of plain words counts too. */
const LONG_CHARS = 16;

export function validateAccount(values: SetupValues, t: Translate): Errors<SetupValues> {
  const { username, password, confirmPassword } = values;
  const errors: Errors<SetupValues> = {};
  if (username.trim() === "") errors.username = t("setup.account.noUsername");
  else if (Array.from(username.trim()).length > MAX_USERNAME_CHARS)
    errors.username = t("setup.account.longUsername");
  if (Array.from(password).length < MIN_PASSWORD_CHARS) errors.password = t("setup.account.shortPassword");
  if (confirmPassword !== password) errors.confirmPassword = t("setup.account.differ");
  return errors;
}

/** Refusals of POST /api/setup that belong to a field. */
export const FIELD_OF_CODE: Record<string, "username" | "password" | "confirmPassword"> = {
  setup_username_empty: "username",
  setup_username_long: "username",
  username_invalid: "username",
  setup_password_short: "password",
  setup_passwords_differ: "confirmPassword",
};

/** 0: too short. 1 to 4: by length and by how many kinds of characters there are; repeats count once. */
export function passwordStrength(password: string): 0 | 1 | 2 | 3 | 4 {
  const chars = Array.from(password);
  if (chars.length < MIN_PASSWORD_CHARS) return 0;
  const kinds = [/\p{Ll}/u, /\p{Lu}/u, /\p{Nd}/u, /[^\p{L}\p{Nd}]/u].filter((kind) =>
    kind.test(password),
  ).length;
  const different = new Set(chars).size;
  if (different < 5 || /^(?:password|12345678|qwertyui|abcdefgh)/i.test(password)) return 1;
  const points = Math.min(different, 16) + kinds * 2 + (chars.length >= LONG_CHARS ? 4 : 0);
  return points < 12 ? 1 : points < 15 ? 2 : points < 19 ? 3 : 4;
}
