// The options that have an editor of their own, and the groups that have a panel: what is not here is drawn by its kind.
import type { ComponentType } from "react";
import { lazyPart } from "../../../lib/lazy-part.tsx";
import type { EditorTable, GroupExtraProps, OptionEditorProps } from "../editor-props.ts";
import { LogoEditor, NameEditor } from "./brand.tsx";
import { Chats } from "./chats.tsx";
import { ClaudeHeaders } from "./claude-headers.tsx";
import { ContentEditor } from "./content.tsx";
import { GeminiSafety } from "./gemini-safety.tsx";
import { GROUP_KEYS, GroupsPanel } from "./groups.tsx";
import { ClaudeMaxTokens, GeminiVersions } from "./model-maps.tsx";
import { NameList } from "./name-list.tsx";
import { AmountList, PayMethodList } from "./pay-lists.tsx";
import type { OptionPanelProps } from "./panel-props.ts";
import { PRICE_MAPS } from "../../../../src/shared/row-maps.ts";
import { RATE_LIMIT_KEYS, RateLimitPanel } from "./rate-limit.tsx";
import { ShareEditor } from "./share.tsx";
import { VERSION_KEYS, VersionPanel } from "./version.tsx";

/** Of both options of its kind. */
const KeyLimits = lazyPart<OptionEditorProps>(() => import("./key-limits.tsx"));
const AffinityRules = lazyPart<OptionEditorProps>(() => import("./affinity-rules.tsx"));
/** The largest of them, and the one of fewest visits. */
const PricesPanel = lazyPart<OptionPanelProps>(() => import("./prices.tsx"));

const EDITORS: Readonly<Record<string, ComponentType<OptionEditorProps>>> = {
  Chats,
  "channel_affinity_setting.rules": AffinityRules,
  "claude.default_max_tokens": ClaudeMaxTokens,
  "claude.model_headers_settings": ClaudeHeaders,
  "claude.thinking_adapter_budget_tokens_percentage": ShareEditor,
  "gemini.safety_settings": GeminiSafety,
  "gemini.supported_imagine_models": NameList,
  "gemini.thinking_adapter_budget_tokens_percentage": ShareEditor,
  "gemini.version_settings": GeminiVersions,
  KeyLimitsDefault: KeyLimits,
  KeyLimitsGroup: KeyLimits,
  PayMethods: PayMethodList,
  "payment_setting.amount_options": AmountList,
  Notice: ContentEditor,
  HomePageContent: ContentEditor,
  About: ContentEditor,
  Footer: ContentEditor,
  SystemName: NameEditor,
  Logo: LogoEditor,
};

interface Panel {
  component: ComponentType<OptionPanelProps>;
  keys: readonly string[];
}

const PANELS: Readonly<Record<string, Panel>> = {
  prices: { component: PricesPanel, keys: PRICE_MAPS },
  groups: { component: GroupsPanel, keys: GROUP_KEYS },
  rate_limit: { component: RateLimitPanel, keys: RATE_LIMIT_KEYS },
  version: { component: VersionPanel, keys: VERSION_KEYS },
};

const EXTRAS: Readonly<Record<string, ComponentType<GroupExtraProps>>> = {
  affinity: lazyPart(() => import("./affinity-state.tsx")),
  payment: lazyPart(() => import("./rails.tsx")),
  sign_in: lazyPart(() => import("./providers.tsx")),
  smtp: lazyPart(() => import("./mail-test.tsx")),
};

export const extraOf: EditorTable["extraOf"] = (group) =>
  Object.hasOwn(EXTRAS, group) ? EXTRAS[group] : undefined;
export const editorOf: EditorTable["editorOf"] = (key) =>
  Object.hasOwn(EDITORS, key) ? EDITORS[key] : undefined;
export const panelOf: EditorTable["panelOf"] = (group) =>
  Object.hasOwn(PANELS, group) ? PANELS[group]?.component : undefined;
export const panelKeys: EditorTable["panelKeys"] = (group) =>
  Object.hasOwn(PANELS, group) ? (PANELS[group]?.keys ?? []) : [];
