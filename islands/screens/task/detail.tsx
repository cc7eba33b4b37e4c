// One creative task in full: times, results that can be played, and the full record as JSON.
// Refuses to play by itself: nothing sounds before somebody asks.
import type { ReactNode } from "react";
import { useT } from "../../lib/i18n.ts";
import { Money, StatusDot, When } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { ChannelTag, Elapsed, ProgressRing } from "../../ui/task-cells.tsx";
import type { Clip } from "./row.ts";
import { actionKey, clipsOf, parsedData, statusLabel } from "./row.ts";
import type { TaskRow } from "../../lib/wire.ts";

export interface TaskDetailProps {
  row: TaskRow;
  isAdmin: boolean;
  onClose: () => void;
}

export default function TaskDetail({ row, isAdmin, onClose }: TaskDetailProps) {
  const t = useT();
  const [tone, key] = statusLabel(row.status);
  const clips = clipsOf(row.data);
  const json = JSON.stringify(
    { ...row, data: parsedData(row.data), properties: parsedData(row.properties) },
    null,
    2,
  );
  return (
    <Drawer isOpen width="normal" title={t(actionKey(row.action))} onClose={onClose}>
      {row.fail_reason ? (
        <section className="detail-section" aria-label={t("task.failReason")}>
          <h3>{t("task.failReason")}</h3>
          <p className="break-words text-error">{row.fail_reason}</p>
        </section>
      ) : null}
      {clips.map((clip, index) => (
        // Clips of one task stand in the order of the upstream and never change it.
        // oxlint-disable-next-line react/no-array-index-key
        <ClipCard key={index} clip={clip} name={t("task.clip", { number: index + 1 })} />
      ))}
      <dl className="facts facts-dense">
        <Fact label={t("task.statusTitle")}>
          <StatusDot tone={tone}>{t(key)}</StatusDot>
        </Fact>
        <Fact label={t("task.progress")}>
          <ProgressRing progress={row.progress} isFailed={row.status === "FAILURE"} />
        </Fact>
        <Fact label={t("task.taskId")}>
          <span className="inline-flex items-center gap-1 mono break-all">
            {row.task_id}
            <CopyButton text={row.task_id} label={t("table.copyIdOf", { id: row.task_id })} />
          </span>
        </Fact>
        <Fact label={t("task.platform")}>{row.platform}</Fact>
        {isAdmin ? (
          <Fact label={t("task.channel")}>
            <ChannelTag id={row.channel_id} />
          </Fact>
        ) : null}
        <Fact label={t("task.submitted")}>
          <When at={row.submit_time} isAbsolute />
        </Fact>
        <Fact label={t("task.started")}>
          <When at={row.start_time} isAbsolute />
        </Fact>
        <Fact label={t("task.finished")}>
          <When at={row.finish_time} isAbsolute />
        </Fact>
        {row.finish_time > 0 ? (
          <Fact label={t("task.elapsed")}>
            <Elapsed fromMs={row.submit_time * 1000} toMs={row.finish_time * 1000} />
          </Fact>
        ) : null}
        {row.quota ? (
          <Fact label={t("task.cost")}>
            <Money quota={row.quota} />
          </Fact>
        ) : null}
      </dl>
      <details className="detail-section" open={clips.length === 0 || undefined}>
        <summary>{t("task.json")}</summary>
        <CopyButton text={json} label={t("common.copy")} withText className="mb-2" />
        <pre className="code-block">
          <code>{json}</code>
        </pre>
      </details>
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

function ClipCard({ clip, name }: { clip: Clip; name: string }) {
  const title = clip.title || name;
  return (
    <section className="mb-3 flex gap-3 rounded-box border border-base-300 p-3" aria-label={title}>
      {clip.imageUrl ? (
        <img
          src={clip.imageUrl}
          alt=""
          loading="lazy"
          width={56}
          height={56}
          className="size-14 rounded-sm bg-base-300 object-cover"
        />
      ) : null}
      <div className="min-w-0 grow">
        <h3 className="font-semibold break-words">{title}</h3>
        {clip.tags ? <p className="cell-sub break-words">{clip.tags}</p> : null}
        {clip.videoUrl && !clip.audioUrl ? (
          <video controls preload="none" src={clip.videoUrl} aria-label={title} className="mt-2 w-full">
            <track kind="captions" />
          </video>
        ) : null}
        {clip.audioUrl ? (
          <audio controls preload="none" src={clip.audioUrl} aria-label={title} className="mt-2 w-full">
            <track kind="captions" />
          </audio>
        ) : null}
        {clip.text ? <p className="mt-2 whitespace-pre-wrap break-words text-muted">{clip.text}</p> : null}
      </div>
    </section>
  );
}
