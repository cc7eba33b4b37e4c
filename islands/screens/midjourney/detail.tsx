// One drawing task in full: times, prompts, the full reason of a failure, its picture.
// Refuses to cut texts: what the table shortens stands here in full.
import type { ReactNode } from "react";
import { useT } from "../../lib/i18n.ts";
import { Money, StatusDot, When } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { ChannelTag, Elapsed, ProgressBar } from "../../ui/task-cells.tsx";
import { actionKey, codeLabel, statusLabel } from "./row.ts";
import type { DrawingRow } from "../../lib/wire.ts";

export interface DrawingDetailProps {
  row: DrawingRow;
  isAdmin: boolean;
  onClose: () => void;
  onImage: () => void;
}

export default function DrawingDetail({ row, isAdmin, onClose, onImage }: DrawingDetailProps) {
  const t = useT();
  const [codeTone, codeKey] = codeLabel(row.code);
  const [tone, key] = statusLabel(row.status);
  const at = (ms: number) => <When at={Math.floor(ms / 1000)} isAbsolute />;
  return (
    <Drawer isOpen width="peek" title={t(actionKey(row.action))} onClose={onClose}>
      {row.image_url ? (
        <button
          type="button"
          className="mb-3 block w-full cursor-zoom-in"
          aria-label={t("midjourney.openImage", { id: row.mj_id || row.id })}
          onClick={onImage}
        >
          <img
            src={row.image_url}
            alt={row.prompt || row.prompt_en}
            className="mx-auto max-h-80 rounded-field"
          />
        </button>
      ) : null}
      {row.fail_reason ? (
        <section className="detail-section" aria-label={t("midjourney.failReason")}>
          <h3>{t("midjourney.failReason")}</h3>
          <p className="break-words text-error">{row.fail_reason}</p>
        </section>
      ) : null}
      <dl className="facts facts-dense">
        {row.mj_id ? (
          <Fact label={t("midjourney.taskId")}>
            <span className="inline-flex items-center gap-1 mono break-all">
              {row.mj_id}
              <CopyButton text={row.mj_id} label={t("table.copyIdOf", { id: row.mj_id })} />
            </span>
          </Fact>
        ) : null}
        {isAdmin ? (
          <>
            <Fact label={t("midjourney.channel")}>
              <ChannelTag id={row.channel_id} />
            </Fact>
            <Fact label={t("midjourney.submitResult")}>
              <StatusDot tone={codeTone}>{t(codeKey)}</StatusDot>
            </Fact>
            <Fact label={t("midjourney.statusTitle")}>
              <StatusDot tone={tone}>{t(key)}</StatusDot>
            </Fact>
          </>
        ) : null}
        <Fact label={t("midjourney.progress")}>
          <ProgressBar progress={row.progress} isFailed={row.status === "FAILURE"} />
        </Fact>
        <Fact label={t("midjourney.submitted")}>{at(row.submit_time)}</Fact>
        <Fact label={t("midjourney.started")}>{at(row.start_time)}</Fact>
        <Fact label={t("midjourney.finished")}>{at(row.finish_time)}</Fact>
        {row.finish_time > 0 ? (
          <Fact label={t("midjourney.elapsed")}>
            <Elapsed fromMs={row.submit_time} toMs={row.finish_time} />
          </Fact>
        ) : null}
        {row.quota ? (
          <Fact label={t("midjourney.cost")}>
            <Money quota={row.quota} />
          </Fact>
        ) : null}
      </dl>
      <Long title={t("midjourney.prompt")} text={row.prompt} />
      <Long title={t("midjourney.promptEn")} text={row.prompt_en} />
    </Drawer>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Long({ title, text }: { title: string; text: string }) {
  if (text === "") return null;
  return (
    <section className="detail-section" aria-label={title}>
      <h3 className="flex items-center gap-1">
        {title}
        <CopyButton text={text} label={`${title}`} />
      </h3>
      <p className="break-words whitespace-pre-wrap">{text}</p>
    </section>
  );
}
