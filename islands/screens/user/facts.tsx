// What is known of an account beyond its form: use of the last month, keys, invitations, bindings, ways on to its records.
// Refuses to hold the drawer up: figures and keys come by themselves, and what fails says so in its place.
import { useEffect, useState } from "react";
import { api, call, failureMessage, isAbort } from "../../lib/api.ts";
import { nowMs } from "../../lib/boot.ts";
import { formatDate, formatNumber, formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { patchUrl } from "../../lib/url-state.ts";
import { Chip, Count, Money, StatusDot, When } from "../../ui/badges.tsx";
import type { StatusTone } from "../../ui/badges.tsx";
import { Section } from "../../ui/form.tsx";
import { UserBindings } from "./bindings.tsx";
import { rankKey } from "./row.ts";
import type { UserKey, UserRow } from "../../lib/wire.ts";

const DAY_SECONDS = 86_400;
const DAYS = 30;

interface Loaded<T> {
  value?: T;
  failure?: string;
}

function useLoaded<T>(question: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({});
  useEffect(() => {
    const controller = new AbortController();
    setLoaded({});
    load(controller.signal).then(
      (value) => setLoaded({ value }),
      (error: unknown) => {
        if (!isAbort(error) && !controller.signal.aborted) setLoaded({ failure: failureMessage(error) });
      },
    );
    return () => controller.abort();
  }, [question]);
  return loaded;
}

export function UserFacts({ row, isReadOnly = false }: { row: UserRow; isReadOnly?: boolean }) {
  const t = useT();
  return (
    <>
      <Section title={t("user.recent")}>
        <RecentUse row={row} />
      </Section>
      <Section title={t("user.keys")}>
        <Keys row={row} />
      </Section>
      <Section title={t("user.bindings")}>
        <UserBindings row={row} isReadOnly={isReadOnly} />
      </Section>
      <Section title={t("user.about")} isFolded={!isReadOnly}>
        <dl className="facts">
          {isReadOnly ? (
            <>
              <Fact label={t("user.displayName")}>{row.display_name}</Fact>
              <Fact label={t("user.group")}>
                <Chip>{row.group}</Chip>
              </Fact>
              <Fact label={t("user.quota")}>
                <Money quota={row.quota} />
              </Fact>
            </>
          ) : null}
          <Fact label={t("user.statements")}>
            <a className="link" href={patchUrl("/topup/statement", { user_id: row.id })}>
              {t("user.statement")}
            </a>
            {" · "}
            <a className="link" href={patchUrl("/order", { user_id: row.id })}>
              {t("shell.nav.orders")}
            </a>
          </Fact>
          <Fact label={t("user.role")}>{t(rankKey(row.role))}</Fact>
          <Fact label={t("user.used")}>
            <Money quota={row.used_quota} />
          </Fact>
          <Fact label={t("user.requests")}>
            <Count value={row.request_count} />
          </Fact>
          <Fact label={t("user.invited")}>
            {t("user.invitedBy", { count: row.aff_count, amount: formatQuota(row.aff_history_quota) })}
          </Fact>
          <Fact label={t("user.binding.email")}>
            {row.email === "" ? (
              <span className="text-muted">{t("user.unbound")}</span>
            ) : (
              <Chip>{row.email}</Chip>
            )}
          </Fact>
        </dl>
      </Section>
    </>
  );
}

function Fact({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const WIDTH = 300;
const HEIGHT = 36;

/** Calls of the last month as bars; the sentence above says the same in words. */
function RecentUse({ row }: { row: UserRow }) {
  const t = useT();
  const { value, failure } = useLoaded(row.username, (signal) => {
    const to = Math.floor(nowMs.peek() / 1000);
    return call(
      api.log.histogram.get({
        query: {
          username: row.username,
          start_timestamp: String(to - DAYS * DAY_SECONDS),
          end_timestamp: String(to),
        },
        fetch: { signal },
      }),
    );
  });
  const log = patchUrl("/log", { username: row.username, range: `${DAYS}d` });
  const buckets = value?.buckets ?? [];
  const calls = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  const errors = buckets.reduce((sum, bucket) => sum + bucket.errors, 0);
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count + bucket.errors));
  const last = buckets.findLast((bucket) => bucket.count + bucket.errors > 0);
  const step = WIDTH / Math.max(1, buckets.length);
  return (
    <>
      <p className="text-[13px]" role="status">
        {failure ??
          (value === undefined
            ? t("common.loading")
            : calls + errors === 0
              ? t("user.recentNone", { count: DAYS })
              : t("user.recentText", {
                  days: DAYS,
                  calls: formatNumber(calls),
                  errors: formatNumber(errors),
                  last: last ? formatDate(last.at * 1000) : "",
                }))}
      </p>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        className="mt-2 h-9 w-full border-b border-base-300"
        aria-hidden
      >
        {buckets.map(({ at, count, errors: failed }, index) => {
          const x = index * step;
          const size = (number: number) => (number / most) * (HEIGHT - 2);
          return (
            <g key={at}>
              <rect
                className="fill-primary"
                x={x}
                y={HEIGHT - size(count)}
                width={step * 0.8}
                height={size(count)}
              />
              <rect
                className="fill-error"
                x={x}
                y={HEIGHT - size(count + failed)}
                width={step * 0.8}
                height={size(failed)}
              />
            </g>
          );
        })}
      </svg>
      <p className="mt-2">
        <a className="link" href={log}>
          {t("user.toLog")}
        </a>
      </p>
    </>
  );
}

const KEY_STATUS: Record<number, readonly [StatusTone, string]> = {
  1: ["ok", "common.enabled"],
  2: ["off", "common.disabled"],
  3: ["attention", "user.key.expired"],
  4: ["attention", "user.key.exhausted"],
};

/** A key that a call would not find usable counts as what the call would meet. */
function keyStatus(key: UserKey, now: number): number {
  if (key.status !== 1) return key.status;
  if (key.expired_time !== -1 && key.expired_time * 1000 <= now) return 3;
  return !key.unlimited_quota && key.remain_quota <= 0 ? 4 : 1;
}

function Keys({ row }: { row: UserRow }) {
  const t = useT();
  const { value, failure } = useLoaded(String(row.id), (signal) =>
    call(api.user({ id: String(row.id) }).keys.get({ fetch: { signal } })),
  );
  if (failure !== undefined) return <p className="text-error">{failure}</p>;
  if (value === undefined) return <p className="text-muted">{t("common.loading")}</p>;
  if (value.length === 0) return <p className="text-muted">{t("user.noKeys")}</p>;
  return (
    <ul className="flex max-h-64 flex-col gap-2 overflow-auto text-[13px]">
      {value.map((key) => {
        const [tone, text] = KEY_STATUS[keyStatus(key, nowMs.peek())] ?? ["off", "common.unknown"];
        return (
          <li key={key.id} className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <a
              className="link min-w-0 grow truncate"
              href={patchUrl("/log", { username: row.username, token_name: key.name, range: `${DAYS}d` })}
            >
              {key.name || `#${key.id}`}
            </a>
            <StatusDot tone={tone}>{t(text)}</StatusDot>
            <span className="text-muted">
              {t("user.usedOf", { amount: formatQuota(key.used_quota) })}
              {" · "}
              <When at={key.accessed_time} never={t("user.key.neverUsed")} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}
