// Whose use an administrator looks at: everybody's, the own, or one user's by name.
// Refuses to ask while a name is being typed: Enter applies it.
import { useEffect, useState } from "react";
import { useT } from "../../lib/i18n.ts";
import type { UsageQuery } from "./usage-query.ts";

export interface ScopeFieldProps {
  scope: UsageQuery["scope"];
  onChange: (patch: Record<string, string | undefined>) => void;
}

export function ScopeField({ scope, onChange }: ScopeFieldProps) {
  const t = useT();
  const shown = typeof scope === "object" ? scope.username : "";
  const [name, setName] = useState(shown);
  // Back and Forward bring other names.
  useEffect(() => setName(shown), [shown]);
  const apply = () => {
    if (name.trim() !== shown) onChange({ username: name.trim() || undefined, scope: undefined });
  };
  return (
    <form
      className="flex flex-wrap items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
    >
      <select
        className="select select-sm w-auto"
        aria-label={t("detail.scope")}
        value={scope === "me" ? "me" : "all"}
        onChange={(event) =>
          onChange({ scope: event.target.value === "me" ? "me" : undefined, username: undefined })
        }
      >
        <option value="all">{t(shown === "" ? "detail.scope.all" : "detail.scope.one")}</option>
        <option value="me">{t("detail.scope.me")}</option>
      </select>
      {scope === "me" ? null : (
        <input
          type="search"
          className="input input-sm w-44"
          aria-label={t("detail.username")}
          placeholder={t("detail.username")}
          maxLength={255}
          value={name}
          onChange={(event) => {
            setName(event.target.value);
            // The cross of the field clears it at once.
            if (event.target.value === "" && shown !== "") {
              onChange({ username: undefined, scope: undefined });
            }
          }}
        />
      )}
    </form>
  );
}
