// The product's lists of models for the channel editor: presets by type, and all that are known.
import { useEffect, useState } from "react";
import { api, call } from "../../lib/api.ts";
import { readJson, writeItem } from "../../lib/storage.ts";

type Presets = Record<string, readonly string[] | null>;

export interface ModelLists {
  presets: Presets;
  all: readonly string[];
}

/** Where the last lists are kept; the specification names the key. */
const MODELS_KEY = "channel_models";

function isPresets(value: unknown): value is Presets {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  return Object.values(value).every(
    (each) => each === null || (Array.isArray(each) && each.every((name) => typeof name === "string")),
  );
}

/** Model lists of the product: those of the last time at once, the present ones when they are there. */
export function useModelLists(): ModelLists {
  const [lists, setLists] = useState(() => ({
    presets: readJson<Presets>(MODELS_KEY, isPresets, {}),
    all: [] as readonly string[],
  }));
  useEffect(() => {
    let isOver = false;
    void Promise.all([call(api.models.get()), call(api.channel.models.get())]).then(
      ([presets, all]) => {
        writeItem(MODELS_KEY, JSON.stringify(presets));
        if (!isOver) setLists({ presets: presets, all: all.map(({ id }) => id) });
      },
      // Without them the editor works; only filling in is not offered.
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, []);
  return lists;
}
