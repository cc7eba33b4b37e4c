// Where a text comes from: an address that this server fetches, a file, or what is pasted.
import { useId, useRef } from "react";
import { useT } from "../../../lib/i18n.ts";

export interface GivenText {
  way: "address" | "text";
  text: string;
  url: string;
  /** Of the provider; sent once and kept nowhere. */
  key: string;
}

interface TextSourceProps {
  given: GivenText;
  onGiven: (given: GivenText) => void;
  /** The address wants the provider's key. */
  hasKey: boolean;
}

export function TextSource({ given, onGiven, hasKey }: TextSourceProps) {
  const t = useT();
  const id = useId();
  const file = useRef<HTMLInputElement>(null);
  const put = (patch: Partial<GivenText>) => onGiven({ ...given, ...patch });
  return (
    <div className="mt-3">
      <fieldset className="mb-2 flex items-center gap-4" aria-label={t("cost.way")}>
        {(["address", "text"] as const).map((way) => (
          <label key={way} className="flex cursor-pointer items-center gap-2 text-dense">
            <input
              type="radio"
              className="radio"
              name={`${id}-way`}
              checked={given.way === way}
              onChange={() => put({ way })}
            />
            {t(`cost.way.${way}`)}
          </label>
        ))}
      </fieldset>
      {given.way === "address" ? (
        <div className="flex flex-wrap gap-x-4 gap-y-2">
          <label className="w-full max-w-xl">
            <span className="mb-0.5 block text-dense font-semibold">{t("cost.address")}</span>
            <input
              type="url"
              className="input mono w-full"
              placeholder="https://"
              autoComplete="off"
              spellCheck={false}
              value={given.url}
              onChange={(event) => put({ url: event.target.value })}
            />
          </label>
          {hasKey ? (
            <label className="w-72 max-sm:w-full">
              <span className="mb-0.5 block text-dense font-semibold">{t("cost.key")}</span>
              <input
                type="password"
                className="input mono w-full"
                autoComplete="off"
                value={given.key}
                onChange={(event) => put({ key: event.target.value })}
              />
            </label>
          ) : null}
          {hasKey ? <p className="w-full text-xs text-muted">{t("cost.keyHint")}</p> : null}
        </div>
      ) : (
        <div className="max-w-xl">
          <div className="mb-0.5 flex min-h-6 items-center">
            <label className="text-dense font-semibold" htmlFor={`${id}-text`}>
              {t("cost.text")}
            </label>
            <input
              ref={file}
              type="file"
              hidden
              accept=".json,.csv,.txt,.tsv"
              aria-label={t("cost.file")}
              onChange={(event) => {
                const [chosen] = event.target.files ?? [];
                if (chosen) void chosen.text().then((text) => put({ text }));
                // The same file may be chosen again after it has changed.
                event.target.value = "";
              }}
            />
            <button
              type="button"
              className="btn btn-xs btn-default ml-auto"
              onClick={() => file.current?.click()}
            >
              {t("cost.file")}
            </button>
          </div>
          <textarea
            id={`${id}-text`}
            className="textarea mono h-28 w-full"
            spellCheck={false}
            value={given.text}
            onChange={(event) => put({ text: event.target.value })}
          />
        </div>
      )}
    </div>
  );
}
