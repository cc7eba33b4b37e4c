// Which column of a CSV is what: its heads as choices, its first lines beside them.
import { useState } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { useT } from "../../../lib/i18n.ts";
import { BusyButton } from "../../../ui/busy-button.tsx";

const FIELDS = ["date", "model", "amount", "input", "cached", "output", "requests", "request_id"] as const;
type Field = (typeof FIELDS)[number];
const UNITS = ["usd", "cent", "quota"] as const;

export type Columns = { date: string; unit?: (typeof UNITS)[number] } & Partial<Record<Field, string>>;

/** What heads are usually called. */
const USUAL: Readonly<Record<Field, RegExp>> = {
  date: /date|day|time|created|日期|时间/i,
  model: /model|模型/i,
  amount: /amount|cost|price|usage \(\$\)|金额|费用/i,
  input: /^(?:input|prompt)|tokens_prompt|输入/i,
  cached: /cache|缓存/i,
  output: /^(?:output|completion)|tokens_completion|输出/i,
  requests: /requests|calls|次数/i,
  request_id: /request_?id|generation_?id|请求/i,
};

interface WizardProps {
  text: string;
  columns: Columns | undefined;
  onColumns: (columns: Columns) => void;
}

export function CsvWizard({ text, columns, onColumns }: WizardProps) {
  const t = useT();
  const [seen, setSeen] = useState<{ heads: string[]; rows: string[][] }>();
  const [failure, setFailure] = useState("");
  const [isBusy, setBusy] = useState(false);
  const read = async () => {
    setBusy(true);
    try {
      const found = await call(api.cost.import.columns.post({ text: text.slice(0, 200_000) }));
      setSeen(found);
      setFailure("");
      const guessed: Columns = { date: "", unit: "usd" };
      for (const field of FIELDS) {
        const head = found.heads.find((each) => USUAL[field].test(each));
        if (head !== undefined) guessed[field] = head;
      }
      onColumns(guessed);
    } catch (error) {
      setFailure(failureMessage(error));
    }
    setBusy(false);
  };
  return (
    <div className="mt-3">
      <BusyButton isBusy={isBusy} className="btn-default btn-sm" onPress={() => void read()}>
        {t("cost.columns")}
      </BusyButton>
      {failure === "" ? null : (
        <p role="alert" className="mt-2 text-dense text-error">
          {failure}
        </p>
      )}
      {seen && columns ? (
        <>
          <div className="mt-3 flex flex-wrap gap-x-4 gap-y-2">
            {FIELDS.map((field) => (
              <label key={field}>
                <span className="mb-0.5 block text-dense font-semibold">{t(`cost.column.${field}`)}</span>
                <select
                  className="select select-sm w-44"
                  value={columns[field] ?? ""}
                  onChange={(event) => onColumns({ ...columns, [field]: event.target.value })}
                >
                  <option value="">–</option>
                  {seen.heads.map((head) => (
                    <option key={head} value={head}>
                      {head}
                    </option>
                  ))}
                </select>
              </label>
            ))}
            <label>
              <span className="mb-0.5 block text-dense font-semibold">{t("cost.unit")}</span>
              <select
                className="select select-sm w-44"
                value={columns.unit ?? "usd"}
                onChange={(event) =>
                  onColumns({ ...columns, unit: UNITS.find((each) => each === event.target.value) ?? "usd" })
                }
              >
                {UNITS.map((unit) => (
                  <option key={unit} value={unit}>
                    {t(`cost.unit.${unit}`)}
                  </option>
                ))}
              </select>
            </label>
          </div>
          <div className="mt-2 overflow-x-auto" tabIndex={0} role="region" aria-label={t("cost.columns")}>
            <table className="table text-xs">
              <thead>
                <tr>
                  {seen.heads.map((head) => (
                    <th key={head} scope="col">
                      {head}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {seen.rows.map((cells, at) => (
                  <tr key={`${at} ${cells.join(" ")}`}>
                    {seen.heads.map((head, column) => (
                      <td key={head}>{cells[column]}</td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      ) : null}
    </div>
  );
}
