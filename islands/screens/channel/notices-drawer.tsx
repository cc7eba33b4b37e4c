// What users are told about models and channels: the notices with their ends, and the form of one.
// Refuses a notice about nothing, without words, or with an end that has passed.
import { useSignals } from "@preact/signals-react/runtime";
import { Pencil, Trash2 } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { api, ApiFailure, call, failureMessage } from "../../lib/api.ts";
import { nowMs, timeZone } from "../../lib/boot.ts";
import { useForm } from "../../lib/form.ts";
import type { Errors, Form } from "../../lib/form.ts";
import { formatDateTime } from "../../lib/format.ts";
import { t as translate, useT } from "../../lib/i18n.ts";
import { namesText } from "../../lib/model-names.ts";
import { parseLocal } from "../../lib/time-range.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { ChannelRow, WrittenNotice } from "../../lib/wire.ts";
import { Drawer, DrawerForm } from "../../ui/drawer.tsx";
import { Empty, FailureNotice } from "../../ui/feedback.tsx";
import { Field, NO_HINT, TextField } from "../../ui/form.tsx";
import { useModelLists } from "./model-lists.ts";
import { namesOf } from "./row.ts";
import { TokenField } from "./token-field.tsx";

const MOST_TEXT = 300;
const HOUR = 3600;
const END_PICKS = [
  ["hour", HOUR],
  ["day", 24 * HOUR],
  ["week", 7 * 24 * HOUR],
  ["never", 0],
] as const;

interface NoticeValues extends Record<string, unknown> {
  text: string;
  /** Comma text. */
  models: string;
  /** Comma text of "12 name". */
  channels: string;
  /** `datetime-local` text in the visitor's zone; empty: no end. */
  until: string;
}

export interface NoticesDrawerProps {
  /** "1": the list; "new"; else the id of the notice that is edited. */
  shown: string;
  /** What a new one is about at first. */
  model: string | undefined;
  channel: string | undefined;
  /** Those at hand, for their names. */
  rows: readonly ChannelRow[];
}

const close = () => setQuery({ notices: undefined, notice_model: undefined, notice_channel: undefined });
const toList = () => setQuery({ notices: 1, notice_model: undefined, notice_channel: undefined });

/** A comma would end the token. */
const channelText = (id: number, rows: readonly ChannelRow[]): string =>
  `${id} ${rows.find((row) => row.id === id)?.name.replaceAll(",", " ") ?? ""}`.trim();

const idsOf = (text: string): number[] => namesOf(text).map((token) => Number.parseInt(token, 10));

const endText = (seconds: number, zone: string): string =>
  formatDateTime(seconds * 1000, zone)
    .slice(0, 16)
    .replace(" ", "T");

function bodyOf({ text, models, channels, until }: NoticeValues, zone: string) {
  return {
    text: text.trim(),
    models: namesOf(models),
    channels: idsOf(channels),
    until: until === "" ? 0 : (parseLocal(until, zone) ?? 0),
  };
}

function problemsOf(values: NoticeValues): Errors<NoticeValues> {
  const ids = idsOf(values.channels);
  const isNothing = namesOf(values.models).length === 0 && ids.length === 0;
  return {
    ...(values.text.trim() === "" ? { text: translate("notice.textMissing") } : {}),
    ...(isNothing ? { models: translate("notice.targetMissing") } : {}),
    ...(ids.every((id) => id > 0) ? {} : { channels: translate("notice.channelWrong") }),
  };
}

function useNotices() {
  const [notices, setNotices] = useState<readonly WrittenNotice[]>();
  const [failure, setFailure] = useState<string>();
  const refresh = useCallback(async () => {
    try {
      setNotices(await call(api.model_notice.get()));
      setFailure(undefined);
    } catch (error) {
      setFailure(failureMessage(error));
    }
  }, []);
  useEffect(() => void refresh(), [refresh]);
  return { notices, failure, refresh };
}

export default function NoticesDrawer({ shown, model, channel, rows }: NoticesDrawerProps) {
  const { notices, failure, refresh } = useNotices();
  const edited = notices?.find(({ id }) => id === shown);
  if (shown === "new" || edited)
    return (
      <NoticeForm
        key={shown}
        notice={edited}
        model={model}
        channel={channel}
        rows={rows}
        onSaved={() => void refresh()}
      />
    );
  return <NoticeList notices={notices} failure={failure} rows={rows} refresh={refresh} />;
}

interface NoticeListProps extends Pick<NoticesDrawerProps, "rows"> {
  notices: readonly WrittenNotice[] | undefined;
  failure: string | undefined;
  refresh: () => Promise<void>;
}

function NoticeList({ notices, failure, rows, refresh }: NoticeListProps) {
  const t = useT();
  useSignals();
  const add = (
    <button type="button" className="btn btn-primary" onClick={() => setQuery({ notices: "new" })}>
      {t("notice.new")}
    </button>
  );
  const remove = async ({ id, ...body }: WrittenNotice) => {
    try {
      await call(api.model_notice({ id }).delete());
      const undo = async () => {
        await call(api.model_notice.post(body));
        await refresh();
      };
      toast({ key: "notice", text: t("notice.removed"), ...(isOver(body, Date.now()) ? {} : { undo }) });
    } catch (error) {
      toastFailure(error, "notice");
    }
    await refresh();
  };
  return (
    <Drawer isOpen title={t("notice.title")} onClose={close} footer={add}>
      <p className="mb-3 text-muted">{t("notice.purpose")}</p>
      {failure === undefined ? null : <FailureNotice text={failure} onRetry={refresh} />}
      {notices?.length === 0 ? <Empty title={t("notice.empty")} text={t("notice.emptyText")} /> : null}
      <ul>
        {notices?.map((notice) => (
          <li key={notice.id} className="flex items-start gap-2 border-base-300 py-3 not-first:border-t">
            <div className="min-w-0 grow wrap-anywhere">
              <p>{notice.text}</p>
              <p className="text-muted">
                <About notice={notice} rows={rows} />
                {" · "}
                <End until={notice.until} />
              </p>
            </div>
            <button
              type="button"
              className="btn btn-ghost btn-square btn-sm"
              aria-label={t("notice.edit", { text: notice.text })}
              title={t("common.edit")}
              onClick={() => setQuery({ notices: notice.id })}
            >
              <Pencil aria-hidden size={16} />
            </button>
            <button
              type="button"
              className="btn btn-ghost btn-square btn-sm"
              aria-label={t("notice.remove", { text: notice.text })}
              title={t("common.delete")}
              onClick={() => void remove(notice)}
            >
              <Trash2 aria-hidden size={16} />
            </button>
          </li>
        ))}
      </ul>
    </Drawer>
  );
}

function isOver({ until }: Pick<WrittenNotice, "until">, now: number): boolean {
  return until !== 0 && until * 1000 <= now;
}

function About({ notice, rows }: { notice: WrittenNotice; rows: readonly ChannelRow[] }) {
  const t = useT();
  const { models, channels } = notice;
  const parts = [
    ...(models.length > 0 ? [namesText(t, models)] : []),
    ...(channels.length > 0
      ? [
          t("notice.ofChannels", {
            count: channels.length,
            names: channels.map((id) => `#${channelText(id, rows)}`).join(", "),
          }),
        ]
      : []),
  ];
  return <>{parts.join("; ")}</>;
}

function End({ until }: { until: number }) {
  const t = useT();
  useSignals();
  if (until === 0) return <>{t("notice.noEnd")}</>;
  const time = formatDateTime(until * 1000, timeZone.value).slice(0, 16);
  return <>{t(isOver({ until }, nowMs.value) ? "notice.ended" : "notice.until", { time })}</>;
}

interface NoticeFormProps extends Omit<NoticesDrawerProps, "shown"> {
  /** undefined: a new one. */
  notice: WrittenNotice | undefined;
  onSaved: () => void;
}

function NoticeForm({ notice, model, channel, rows, onSaved }: NoticeFormProps) {
  const t = useT();
  const zone = timeZone.peek();
  const lists = useModelLists();
  const form = useForm<NoticeValues>({
    initial: {
      text: notice?.text ?? "",
      models: notice?.models.join(",") ?? model ?? "",
      channels: (notice?.channels ?? (channel === undefined ? [] : [Number(channel)]))
        .map((id) => channelText(id, rows))
        .join(","),
      until: notice && notice.until > 0 ? endText(notice.until, zone) : "",
    },
    validate: problemsOf,
  });
  const save = async (values: NoticeValues) => {
    const body = bodyOf(values, zone);
    try {
      await (notice
        ? call(api.model_notice({ id: notice.id }).put(body))
        : call(api.model_notice.post(body)));
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.field === undefined) throw error;
      const field = error.field.split(".")[0] ?? "";
      throw new ApiFailure(error.code, error.status, error.message, field, undefined, error.requestId);
    }
    toast({ key: "notice", text: t("common.saved") });
    onSaved();
  };
  return (
    <DrawerForm
      form={form}
      isOpen
      isNew={notice === undefined}
      title={t(notice ? "notice.editTitle" : "notice.new")}
      onClose={toList}
      onSave={save}
      curl={(values) => ({
        method: notice ? "PUT" : "POST",
        path: `/api/model_notice/${notice?.id ?? ""}`,
        body: bodyOf(values, zone),
      })}
    >
      <TextField
        form={form}
        name="text"
        label={t("notice.text")}
        hint={t("notice.textHint")}
        limit={MOST_TEXT}
        isRequired
      />
      <TokenField
        form={form}
        name="models"
        label={t("notice.models")}
        hint={t("notice.modelsHint")}
        isMono
        suggestions={[...new Set([...rows.flatMap((row) => namesOf(row.models)), ...lists.all])]}
      />
      <TokenField
        form={form}
        name="channels"
        label={t("notice.channels")}
        hint={t("notice.channelsHint")}
        suggestions={rows.map(({ id }) => channelText(id, rows))}
      />
      <EndField form={form} zone={zone} />
    </DrawerForm>
  );
}

function EndField({ form, zone }: { form: Form<NoticeValues>; zone: string }) {
  const t = useT();
  return (
    <>
      <Field
        form={form}
        name="until"
        label={t("notice.end")}
        hint={form.values.until === "" ? t("notice.noEnd") : NO_HINT}
      >
        {(control) => (
          <input
            {...control}
            type="datetime-local"
            className="input"
            value={form.values.until}
            onChange={(event) => form.set("until", event.target.value)}
          />
        )}
      </Field>
      <div className="-mt-2 mb-4 flex flex-wrap gap-2" role="group" aria-label={t("notice.end")}>
        {END_PICKS.map(([name, seconds]) => (
          <button
            key={name}
            type="button"
            className="btn btn-sm btn-default"
            onClick={() =>
              form.set("until", seconds === 0 ? "" : endText(Math.ceil(Date.now() / 1000) + seconds, zone))
            }
          >
            {t(`notice.pick.${name}`)}
          </button>
        ))}
      </div>
    </>
  );
}
