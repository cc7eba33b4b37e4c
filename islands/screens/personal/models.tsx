// The models one may call: ten first, then all of them by the beginning of their names; searched, copied, priced on hover.
// Refuses to print thousands at once: the search narrows what is left out.
import { useEffect, useRef, useState } from "react";
import { api, call } from "../../lib/api.ts";
import { prefixOf } from "../../../src/shared/model-prefix.ts";
import { compareNames, formatNumber } from "../../lib/format.ts";
import { language, useT } from "../../lib/i18n.ts";
import { KEYS, writeCookie, writeItem } from "../../lib/storage.ts";
import { copyText } from "../../ui/copy-button.tsx";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { Card } from "./card.tsx";

/** Models shown before the list is unfolded. */
const FEW_MODELS = 10;
const MOST_SHOWN = 500;
const FIRST_PREFIX = "gpt";

export interface ModelGroup {
  /** Empty: what shares its beginning with nothing else. */
  prefix: string;
  models: string[];
}

/** Names that begin with gpt first, then by name; single ones together at the end. */
export function modelGroups(models: readonly string[]): ModelGroup[] {
  const groups = new Map<string, string[]>();
  for (const model of models) {
    const prefix = prefixOf(model);
    const group = groups.get(prefix);
    if (group) group.push(model);
    else groups.set(prefix, [model]);
  }
  const compare = compareNames(language.peek());
  const isFirst = (prefix: string) => Number(prefix !== FIRST_PREFIX);
  const shared = [...groups].filter(([prefix, names]) => prefix !== "" && names.length > 1);
  const single = [...groups].filter(([prefix, names]) => prefix === "" || names.length === 1);
  const named = shared
    .sort(([a], [b]) => isFirst(a) - isFirst(b) || compare(a, b))
    .map(([prefix, names]) => ({ prefix, models: names.sort(compare) }));
  const rest = single.flatMap(([, names]) => names).sort(compare);
  return rest.length > 0 ? [...named, { prefix: "", models: rest }] : named;
}

/** Prices of the visitor's own group, fetched when somebody looks. */
function usePrices(): { look: () => void; textOf: (model: string) => string | undefined } {
  const [prices, setPrices] = useState<ReadonlyMap<string, string>>();
  const isRequested = useRef(false);
  return {
    look() {
      if (isRequested.current) return;
      isRequested.current = true;
      // Prices are an extra here: without them the names stand alone.
      import("./model-prices.ts").then(({ fetchPrices }) => fetchPrices()).then(setPrices, () => undefined);
    },
    textOf: (model) => prices?.get(model),
  };
}

export interface ModelsCardProps {
  models: readonly string[];
  count: number;
  /** As the visitor left it. */
  isExpanded: boolean;
}

export function ModelsCard({ models, count, isExpanded }: ModelsCardProps) {
  const t = useT();
  const [all, setAll] = useState(models);
  const [term, setTerm] = useState("");
  const [isOpen, setOpen] = useState(isExpanded);
  const { look, textOf } = usePrices();
  const isComplete = all.length >= count;
  const needsAll = (isOpen || term.trim() !== "") && !isComplete;

  useEffect(() => {
    if (!needsAll) return undefined;
    let isCurrent = true;
    call(api.user.models.get()).then(
      (names) => {
        if (isCurrent) setAll(names as string[]);
      },
      (error: unknown) => {
        if (isCurrent) toastFailure(error, "models");
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [needsAll]);

  const words = term.trim().toLowerCase();
  const found = words === "" ? all : all.filter((name) => name.toLowerCase().includes(words));
  const groups = modelGroups(found);
  const isFolded = !isOpen && words === "";
  const shown = isFolded
    ? [{ prefix: "", models: groups.flatMap((group) => group.models).slice(0, FEW_MODELS) }]
    : groups;
  let left = MOST_SHOWN;
  const cut = shown.flatMap(({ prefix, models: names }) => {
    const part = names.slice(0, left);
    left -= part.length;
    return part.length > 0 ? [{ prefix, models: part, count: names.length }] : [];
  });
  const copy = async (name: string) => {
    if (await copyText(name)) toast({ key: "model", text: t("personal.modelCopied", { name }) });
  };
  const toggle = () => {
    setOpen(!isOpen);
    writeItem(KEYS.modelsExpanded, String(!isOpen));
    // The server draws the first paint as it was left.
    writeCookie(KEYS.modelsExpanded, String(!isOpen));
  };

  return (
    <Card id="models" title={t("personal.models")} note={t("personal.modelsNote", { count })}>
      {count > FEW_MODELS ? (
        <input
          className="input mb-3"
          type="search"
          aria-label={t("personal.modelsSearch")}
          placeholder={t("personal.modelsSearch")}
          value={term}
          onChange={(event) => setTerm(event.target.value)}
        />
      ) : null}
      {found.length === 0 ? (
        <p className="text-muted" role="status">
          {t(count === 0 ? "personal.noModels" : "personal.noModelsFound")}
        </p>
      ) : null}
      <div onPointerEnter={look} onFocus={look}>
        {cut.map(({ prefix, models: names, count: size }) => (
          <div key={prefix} className="mb-3">
            {isFolded || cut.length === 1 ? null : (
              <h3 className="mb-1 text-xs font-semibold text-muted">
                {prefix === "" ? t("personal.otherModels") : prefix} · {formatNumber(size)}
              </h3>
            )}
            <ul className="flex flex-wrap gap-1">
              {names.map((name) => (
                <li key={name} className="min-w-0">
                  <button
                    type="button"
                    className="badge badge-ghost badge-sm max-w-full cursor-pointer break-all hover:bg-base-300"
                    title={[t("personal.copyModel", { name }), textOf(name)].filter(Boolean).join("\n")}
                    onClick={() => void copy(name)}
                  >
                    {name}
                  </button>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </div>
      {left === 0 && found.length > MOST_SHOWN ? (
        <p className="text-sm text-muted">
          {t("personal.modelsCut", { count: MOST_SHOWN, number: formatNumber(found.length) })}
        </p>
      ) : null}
      {words === "" && count > FEW_MODELS ? (
        <button type="button" className="btn btn-sm btn-ghost" aria-expanded={isOpen} onClick={toggle}>
          {isOpen ? t("personal.fewModels") : t("personal.allModels", { count })}
        </button>
      ) : null}
    </Card>
  );
}
