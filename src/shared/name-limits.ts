// How long names may be, in characters as people count them, for the rules and for the forms that tell them beforehand.

export const MAX_TOKEN_NAME = 30;
export const MAX_CHANNEL_NAME = 255;
export const MAX_MODEL_NAME = 255;
export const MAX_CODE_NAME = 20;
export const MAX_USERNAME = 12;
export const MAX_DISPLAY_NAME = 20;
export const MAX_TAG = 64;
/** What administrators note about an account. */
export const MAX_REMARK = 500;
export const MIN_PASSWORD = 8;
export const MAX_PASSWORD = 64;

/** An ideograph counts as one, and so does a letter outside the first plane. */
export function charactersIn(text: string): number {
  return Array.from(text).length;
}
