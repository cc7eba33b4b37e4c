// The visitor's enabled keys for a chat client: its link carries one of them.
// Refuses keys that would be turned away: disabled, expired and used-up ones.
import type { ChatPageData } from "../../islands/screens/chat.tsx";
import { listTokens } from "../core/users/tokens.ts";
import { TokenStatus } from "../shared/enums.ts";
import type { LoaderContext } from "./page.ts";

const MOST_KEYS = 100;

export async function loadChat({ deps, user }: LoaderContext): Promise<ChatPageData> {
  if (!user) return { keys: [] };
  const { items } = await listTokens(deps, user, {
    status: TokenStatus.enabled,
    offset: 0,
    limit: MOST_KEYS,
  });
  return {
    keys: items.filter(({ key }) => key !== "").map(({ id, name, key }) => ({ id, name, key })),
  };
}
