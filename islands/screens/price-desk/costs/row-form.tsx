// One cost row as it is typed: dollars by kind, or the list, times a factor.
import { useId, useState } from "react";
import type { FormEvent } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { useT } from "../../../lib/i18n.ts";
import { BusyButton } from "../../../ui/busy-button.tsx";

const KINDS = ["in", "cache_read", "cache_write", "out"] as const;
type Basis = "row" | "call" | "list";

export function CostForm({ channelId, onWritten }: { channelId: number; onWritten: () => void }) {
  const t = useT();
  const id = useId();
  const [basis, setBasis] = useState<Basis>("row");
  const [typed, setTyped] = useState<Record<string, string>>({ model: "*", factor: "1", ratio: "1" });
  const [failure, setFailure] = useState("");
  const [isBusy, setBusy] = useState(false);
  const field = (name: string) => typed[name] ?? "";
  const put = (name: string, value: string) => setTyped((before) => ({ ...before, [name]: value }));
  const numberAt = (name: string): number | undefined => {
    const text = field(name).trim();
    return /^\d+(?:\.\d+)?$|^\.\d+$/.test(text) ? Number(text) : undefined;
  };
  const rowOf = (): Record<string, number> | null | undefined => {
    if (basis === "list") return null;
    const names = basis === "call" ? (["call"] as const) : KINDS.filter((kind) => field(kind).trim() !== "");
    const row: Record<string, number> = {};
    for (const name of names) {
      const value = numberAt(name);
      if (value === undefined) return undefined;
      row[name] = value;
    }
    return row;
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (isBusy) return;
    const row = rowOf();
    const [factor, ratio] = [numberAt("factor"), numberAt("ratio")];
    if (row === undefined || factor === undefined || ratio === undefined) {
      setFailure(t("cost.numbers"));
      return;
    }
    setBusy(true);
    try {
      const rows = [{ model: field("model").trim() || "*", row, factor, group_ratio: ratio }];
      await call(api.cost.post({ channel_id: channelId, rows }));
      onWritten();
    } catch (error) {
      setFailure(failureMessage(error));
    }
    setBusy(false);
  };
  const input = (name: string, label: string, className = "w-28") => (
    <div>
      <label className="mb-0.5 block text-dense font-semibold" htmlFor={`${id}-${name}`}>
        {label}
      </label>
      <input
        id={`${id}-${name}`}
        className={`input mono ${className}`}
        inputMode={name === "model" ? "text" : "decimal"}
        autoComplete="off"
        spellCheck={false}
        value={field(name)}
        onChange={(event) => put(name, event.target.value)}
      />
    </div>
  );
  return (
    <form
      className="mb-4 rounded-box border border-base-300 p-4"
      onSubmit={(event) => void submit(event)}
      noValidate
    >
      <div className="flex flex-wrap items-end gap-x-4 gap-y-3">
        {input("model", t("cost.model"), "w-60")}
        <div>
          <label className="mb-0.5 block text-dense font-semibold" htmlFor={`${id}-basis`}>
            {t("cost.basis")}
          </label>
          <select
            id={`${id}-basis`}
            className="select w-52"
            value={basis}
            onChange={(event) => setBasis(event.target.value as Basis)}
          >
            {(["row", "call", "list"] as const).map((each) => (
              <option key={each} value={each}>
                {t(`cost.basis.${each}`)}
              </option>
            ))}
          </select>
        </div>
        {basis === "row"
          ? KINDS.map((kind) => <div key={kind}>{input(kind, t(`cost.kind.${kind}`))}</div>)
          : null}
        {basis === "call" ? input("call", t("cost.call")) : null}
        {input("factor", t("cost.factor"), "w-24")}
        {input("ratio", t("cost.ratio"), "w-24")}
        <BusyButton isBusy={isBusy} className="btn-primary">
          {t("common.save")}
        </BusyButton>
      </div>
      <p className="mt-2 text-xs text-muted">{t("cost.formHint")}</p>
      {failure === "" ? null : (
        <p role="alert" className="mt-2 text-dense text-error">
          {failure}
        </p>
      )}
    </form>
  );
}
