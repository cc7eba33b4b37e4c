// Where a provider sends people back to: hands what it says to the server, and goes on, or says why not (ui.md 8.7).
// Refuses to move anyone before a failure was explained, and to send the same code twice.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useRef, useState } from "react";
import { ApiFailure, failureMessage, sendForBody } from "../lib/api.ts";
import { boot, bootData, user } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { leaveFor } from "../lib/leave.ts";
import { nextAddress } from "../lib/next-address.ts";
import {
  isFactorAsked,
  keepSignedIn,
  lastFlow,
  placeAfter,
  signInFlags,
  startProvider,
} from "../lib/sign-in.ts";
import type { FactorAsked, LegalPlaces, ProviderFlow, SignedIn, SignInAnswer } from "../lib/sign-in.ts";
import { answerOf, routeOf } from "./oauth-callback/answer.ts";
import { Failed } from "./oauth-callback/failed.tsx";
import type { Failure } from "./oauth-callback/failed.tsx";
import { Unaccepted } from "./oauth-callback/unaccepted.tsx";

const SecondStep = lazyPart(() => import("../ui/second-step.tsx"));

type State =
  | { is: "running" }
  | { is: "done"; key: string }
  | { is: "second"; asked: FactorAsked }
  | { is: "terms" }
  | { is: "failed"; failure: Failure };

const TITLES = {
  running: "signin.callback.running",
  done: "signin.callback.running",
  second: "login.second",
  terms: "signin.callback.terms",
  failed: "signin.callback.failed",
} as const;

/** What was begun in this tab, if it was with this provider. */
function flowOf(provider: string): ProviderFlow {
  const last = lastFlow();
  return last?.provider === provider ? last : { provider, intent: user.peek() ? "bind" : "signin" };
}

/** The provider's answer, taken to the server once; `state` is what came of it. */
function useAnswer(provider: string): {
  state: State;
  goOn: (answer: SignedIn, next?: string) => void;
  anew: () => void;
} {
  const t = useT();
  const [state, setState] = useState<State>({ is: "running" });
  const isSent = useRef(false);
  const goOn = (answer: SignedIn, next?: string) => {
    keepSignedIn(answer);
    setState({ is: "done", key: "signin.callback.signedIn" });
    leaveFor(placeAfter(answer, next));
  };
  const settle = (message: string | undefined, data: (SignInAnswer & { next?: string }) | null) => {
    if (message === "bind") {
      setState({ is: "done", key: "signin.callback.bound" });
      return leaveFor(`/personal?bound=${encodeURIComponent(provider)}#bindings`);
    }
    if (message === "verify") {
      setState({ is: "done", key: "signin.callback.verified" });
      return leaveFor(nextAddress(data?.next ?? flowOf(provider).next, location.origin));
    }
    if (data !== null && isFactorAsked(data)) return setState({ is: "second", asked: data });
    if (data !== null && "id" in data) return goOn(data, flowOf(provider).next);
    throw new ApiFailure("bad_answer", 0, t("signin.callback.unknown"));
  };
  const ask = async () => {
    const given = answerOf(location.search, location.hash);
    // Reloading must not send it again, and nobody finds it in the history.
    history.replaceState(history.state, "", location.pathname);
    if (given === undefined)
      return setState({ is: "failed", failure: { text: t("signin.callback.empty"), code: "", said: "" } });
    try {
      const { data, message } = await sendForBody<SignInAnswer | null>(
        "GET",
        routeOf(provider, flowOf(provider).intent),
        { query: given },
      );
      settle(message, data ?? null);
    } catch (error) {
      const code = error instanceof ApiFailure ? error.code : "";
      if (code === "terms_unaccepted") return setState({ is: "terms" });
      const said = given["error_description"] ?? given["error"] ?? "";
      setState({ is: "failed", failure: { text: failureMessage(error), code, said } });
    }
  };
  useEffect(() => {
    if (isSent.current) return;
    isSent.current = true;
    void ask();
  }, []);
  const anew = () =>
    setState({ is: "failed", failure: { text: t("signin.callback.again"), code: "", said: "" } });
  return { state, goOn, anew };
}

export default function OauthCallback() {
  const t = useT();
  useSignals();
  const provider = boot.peek().params["id"] ?? "";
  const known = signInFlags().sign_in_providers?.find(({ id }) => id === provider);
  const name = known?.label ?? provider;
  const { state, goOn, anew } = useAnswer(provider);
  const start = (more: Partial<ProviderFlow> = {}) => startProvider({ ...flowOf(provider), ...more });
  return (
    <section className="w-full max-w-90" aria-busy={state.is === "running"}>
      <h1 className="mb-4 break-words">{t(TITLES[state.is], { name })}</h1>
      {state.is === "running" || state.is === "done" ? (
        <p role="status" className="flex items-center gap-2 text-muted">
          <span className="loading loading-spinner loading-sm" aria-hidden />
          {t(state.is === "done" ? state.key : "signin.callback.wait", { name })}
        </p>
      ) : state.is === "second" ? (
        <SecondStep
          asked={state.asked}
          onSignedIn={(answer) => goOn(answer, state.asked.next ?? flowOf(provider).next)}
          onBack={anew}
        />
      ) : state.is === "terms" ? (
        <Unaccepted
          name={name}
          places={bootData<LegalPlaces | null>()}
          onAccept={() => start({ accept_terms: true })}
        />
      ) : (
        <Failed
          failure={state.failure}
          isSignedIn={user.value !== null}
          canRetry={known !== undefined && known.kind !== "wechat"}
          next={flowOf(provider).next}
          onRetry={() => start()}
        />
      )}
    </section>
  );
}
