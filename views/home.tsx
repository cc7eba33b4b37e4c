// The home page: what this is, its base URL, a first call in three dialects, the operator's own content and notice.
// Refuses to need scripts: the samples switch with radio buttons, only copying needs lite.
import { KeyRound, LogIn, MessageSquareText, Tags } from "lucide-react";
import type { Translate } from "./document.tsx";

export interface HomeViewProps {
  t: Translate;
  siteName: string;
  /** Base of the OpenAI-shaped calls, ending in /v1. */
  baseUrl: string;
  samples: readonly { id: string; title: string; code: string }[];
  isSignedIn: boolean;
  /** An administrator whose gateway cannot serve anything yet. */
  needsChannel: boolean;
  docsLink: string;
  /** Sanitised HTML; empty for none. */
  noticeHtml: string;
  contentHtml: string;
}

export function HomeView(props: HomeViewProps) {
  const { t } = props;
  return (
    <div className="flex flex-col gap-6">
      {props.noticeHtml === "" ? null : (
        <aside className="alert alert-soft !mb-0" data-tone="info" aria-label={t("public.notice")}>
          <div className="prose-page min-w-0 grow" dangerouslySetInnerHTML={{ __html: props.noticeHtml }} />
        </aside>
      )}
      {props.needsChannel ? (
        <div className="alert alert-soft !mb-0" data-tone="warning">
          <p className="grow">{t("public.noChannel")}</p>
          <a className="btn btn-sm btn-default" href="/channel?new=1">
            {t("public.noChannelAction")}
          </a>
        </div>
      ) : null}
      {props.contentHtml === "" ? <BuiltIn {...props} /> : <OwnContent {...props} />}
    </div>
  );
}

/** The operator's page in place of ours; a heading is there for those who listen where it has none. */
function OwnContent({ contentHtml, siteName }: HomeViewProps) {
  return (
    <article className="prose-page max-w-none!">
      {/<h1[\s>]/i.test(contentHtml) ? null : <h1 className="sr-only">{siteName}</h1>}
      <div dangerouslySetInnerHTML={{ __html: contentHtml }} />
    </article>
  );
}

function BuiltIn(props: HomeViewProps) {
  const { t, baseUrl, samples } = props;
  return (
    <div className="grid items-start gap-8 lg:grid-cols-2">
      <section className="min-w-0">
        <h1 className="text-2xl leading-8">{props.siteName}</h1>
        <p className="mt-2 max-w-[48ch] text-muted">{t("public.tagline")}</p>
        <h2 className="mt-6 text-[13px] leading-5" id="base-url-title">
          {t("public.baseUrl")}
        </h2>
        <div className="mt-1 flex items-center gap-2">
          <code
            id="base-url"
            className="min-w-0 rounded-field border border-base-300 bg-base-200 px-3 py-1.5 text-[13px] break-all"
          >
            {baseUrl}
          </code>
          <button
            type="button"
            className="btn btn-sm btn-default flex-none"
            data-copy="#base-url"
            aria-label={t("public.copyBaseUrl")}
          >
            {t("common.copy")}
          </button>
        </div>
        <HomeLinks {...props} />
      </section>
      <section className="min-w-0" aria-labelledby="first-call">
        <h2 id="first-call">{t("public.tryIt")}</h2>
        <p className="mt-1 text-muted">{t("public.tryItText")}</p>
        <div
          className="tabs tabs-border relative mt-2"
          role="radiogroup"
          aria-label={t("public.sampleDialect")}
        >
          {samples.map(({ id, title, code }, index) => (
            <SamplePart
              key={id}
              id={id}
              title={title}
              code={code}
              isFirst={index === 0}
              copyLabel={t("public.copySample")}
            />
          ))}
        </div>
      </section>
    </div>
  );
}

function HomeLinks({ t, isSignedIn, docsLink }: HomeViewProps) {
  return (
    <div className="mt-6 flex flex-wrap gap-2">
      {isSignedIn ? (
        <>
          <a className="btn btn-primary" href="/token">
            <KeyRound aria-hidden size={16} />
            {t("public.keys")}
          </a>
          <a className="btn btn-default" href="/playground">
            <MessageSquareText aria-hidden size={16} />
            {t("public.playground")}
          </a>
        </>
      ) : (
        <a className="btn btn-primary" href="/login">
          <LogIn aria-hidden size={16} />
          {t("public.signIn")}
        </a>
      )}
      <a className="btn btn-default" href="/pricing">
        <Tags aria-hidden size={16} />
        {t("shell.top.pricing")}
      </a>
      {docsLink === "" ? null : (
        <a className="btn btn-default" href={docsLink} target="_blank" rel="noreferrer">
          {t("public.docs")}
        </a>
      )}
    </div>
  );
}

/** A radio button drawn as a tab, followed by what it shows: the style sheet shows the content of the checked one. */
function SamplePart({
  id,
  title,
  code,
  isFirst,
  copyLabel,
}: {
  id: string;
  title: string;
  code: string;
  isFirst: boolean;
  copyLabel: string;
}) {
  return (
    <>
      <input
        type="radio"
        name="sample"
        className="tab !text-muted checked:!text-base-content"
        aria-label={title}
        defaultChecked={isFirst}
      />
      <div className="tab-content pt-3">
        <pre
          id={`sample-${id}`}
          // Scrolls sideways: has to be reachable by keyboard.
          tabIndex={0}
          className="overflow-x-auto rounded-box border border-base-300 bg-base-200 p-3 text-[13px] leading-5"
        >
          <code>{code}</code>
        </pre>
        <button type="button" className="btn btn-sm btn-default mt-2" data-copy={`#sample-${id}`}>
          {copyLabel}
        </button>
      </div>
    </>
  );
}
