// Descriptions of groups: those that the product itself has given are said in the reader's language.
import type { Translate } from "./i18n.ts";

const SHIPPED: Readonly<Record<string, string>> = {
  默认分组: "common.groupDefault",
  vip分组: "common.groupVip",
  用户分组: "common.groupYours",
};

/** An operator's own words stay as they are. */
export function groupText(t: Translate, description: string): string {
  const key = Object.hasOwn(SHIPPED, description) ? SHIPPED[description] : undefined;
  return key === undefined ? description : t(key);
}
