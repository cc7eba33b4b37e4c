// The keys of one channel as the server has them: read in pages, and changed one call at a time, at once.
// Refuses to guess: what a change made of the keys is what its answer says.
import { useEffect, useRef, useState } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { toastFailure } from "../../../lib/toasts.ts";
import type { ChannelKeys } from "../../../lib/wire.ts";

export const KEYS_PER_PAGE = 20;

type Body = Parameters<typeof api.channel.multi_key.manage.post>[0];
export type KeyAction = Omit<Body, "channel_id" | "page" | "page_size">;
export type KeyTest = ChannelKeys["tests"][number];

export interface Keys {
  /** undefined: not read yet. */
  page: ChannelKeys | undefined;
  failure: string | undefined;
  /** What runs now: a key by its id, or a whole action by its name. */
  busy: ReadonlySet<number | string>;
  /** What a test found, by the key's id. */
  tests: ReadonlyMap<number, KeyTest>;
  show: (page: number) => void;
  refresh: () => void;
  /** True: it was done. What failed is told. */
  run: (action: KeyAction) => Promise<boolean>;
  /** The same as a saved channel: keys that join those before. */
  add: (text: string) => Promise<boolean>;
}

/** `onChange`: the channel may have changed with its keys. */
export function useKeys(channelId: number, onChange: () => void): Keys {
  const [page, setPage] = useState<ChannelKeys>();
  const [failure, setFailure] = useState<string>();
  const [busy, setBusy] = useState<ReadonlySet<number | string>>(new Set());
  const [tests, setTests] = useState<ReadonlyMap<number, KeyTest>>(new Map());
  const shown = useRef(1);
  /** Answers may overtake each other: the newest question counts. */
  const asked = useRef(0);

  const ask = async (action: KeyAction): Promise<ChannelKeys> => {
    const turn = ++asked.current;
    const body = { channel_id: channelId, page: shown.current, page_size: KEYS_PER_PAGE, ...action };
    const answer = await call(api.channel.multi_key.manage.post(body));
    // The last page may have gone with its keys.
    if (answer.keys.length === 0 && answer.total > 0 && answer.page > answer.total_pages) {
      shown.current = answer.total_pages;
      return ask({ action: "get_key_status" });
    }
    if (turn === asked.current) {
      setPage(answer);
      setFailure(undefined);
    }
    return answer;
  };
  const refresh = () =>
    void ask({ action: "get_key_status" }).catch((error: unknown) => setFailure(failureMessage(error)));
  useEffect(refresh, [channelId]);

  const whileBusy = async (name: number | string, work: () => Promise<void>): Promise<boolean> => {
    setBusy((before) => new Set([...before, name]));
    try {
      await work();
      return true;
    } catch (error) {
      toastFailure(error, "channel keys");
      return false;
    } finally {
      setBusy((before) => new Set([...before].filter((each) => each !== name)));
    }
  };

  return {
    page,
    failure,
    busy,
    tests,
    refresh,
    show(wanted) {
      shown.current = wanted;
      refresh();
    },
    run: (action) =>
      whileBusy(action.key_id ?? action.action, async () => {
        const { tests: found } = await ask(action);
        if (found.length > 0)
          setTests((before) => new Map([...before, ...found.map((test) => [test.key_id, test] as const)]));
        onChange();
      }),
    add: (text) =>
      whileBusy("add", async () => {
        await call(api.channel.put({ id: channelId, key: text, key_mode: "append" }));
        await ask({ action: "get_key_status" });
        onChange();
      }),
  };
}
