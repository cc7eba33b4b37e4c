// ${NAME} in settings files: what is secret stands in the environment of whoever applies the file, never in the file.
import { definitionOf, isOptionKey } from "../options/definitions.ts";
import { EACH_VARIABLE, filledIn, MASK, maskedQuery, variablesDeep } from "./masked.ts";
import { isRecord, wrong } from "./judge.ts";
import type { Judge, Path } from "./judge.ts";

const WHOLE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

const PASSWORD = /^([a-z][a-z0-9+.-]*:\/\/[^/?#@:]*):([^/?#]*)@/i;

const namesIn = (text: unknown): string[] =>
  typeof text === "string" ? [...text.matchAll(EACH_VARIABLE)].map((match) => match[1] ?? "") : [];

/** The variables that a file needs: no others are to leave the machine that it is sent from. */
export function variablesIn(document: unknown): string[] {
  const { options, channels } = isRecord(document) ? document : {};
  const secrets = Object.entries(isRecord(options) ? options : {}).filter(
    ([key]) => isOptionKey(key) && definitionOf(key).secret === true,
  );
  const ofChannels = Object.values(isRecord(channels) ? channels : {}).filter(isRecord);
  const texts = [
    ...secrets.map(([, value]) => value),
    ...ofChannels.flatMap(({ key, base_url: address, setting }) => [
      key,
      address,
      isRecord(setting) ? setting["proxy"] : undefined,
    ]),
  ];
  const within = ofChannels.flatMap(({ header_override: headers, param_override: params }) => [
    ...variablesDeep(headers),
    ...variablesDeep(params),
  ]);
  return [...new Set([...texts.flatMap(namesIn), ...within])].toSorted();
}

/** The value of a secret, which is a variable and nothing else; undefined, and a problem, where it is not. */
export function secretOf(judge: Judge, path: Path, value: unknown): string | undefined {
  const name = typeof value === "string" ? WHOLE.exec(value)?.[1] : undefined;
  if (name === undefined) {
    wrong(judge, path, "config_literal_secret", { name: path.at(-1) ?? "" });
    return undefined;
  }
  return variableOf(judge, path, name);
}

function variableOf(judge: Judge, path: Path, name: string): string | undefined {
  const value = judge.variables.get(name);
  if (value !== undefined && value.trim() !== "") return value;
  wrong(judge, path, "config_variable_missing", { name });
  return undefined;
}

/** An address without its password, and without keys among its parameters. */
export const maskedAddress = (address: string): string =>
  maskedQuery(address.replace(PASSWORD, `$1:${MASK}@`));

/**
 * The address that is meant: `***` is the password that it has already, `${NAME}` one of the environment. A password in
 * plain text is a problem.
 */
export function addressOf(judge: Judge, path: Path, sent: string, before: string): string | undefined {
  const password = PASSWORD.exec(sent)?.[2];
  if (password === MASK || sent.includes(`=${MASK}`)) {
    if (maskedAddress(before) === sent) return before;
    wrong(judge, path, "config_masked_password");
    return undefined;
  }
  if (password === undefined || password === "") return filledIn(judge, path, sent, encodeURIComponent);
  const value = secretOf(judge, path, password);
  return value === undefined ? undefined : sent.replace(PASSWORD, `$1:${encodeURIComponent(value)}@`);
}
