// The table of pages: one row per path, saying frame, screen, loader, role and title. serve-pages.ts registers them.
// Rows only: loaders live in load-*.ts beside this file, markup in views/ and islands/screens/.
import ChannelScreen from "../../islands/screens/channel.tsx";
import DetailScreen from "../../islands/screens/detail.tsx";
import InboxScreen from "../../islands/screens/inbox.tsx";
import LogScreen from "../../islands/screens/log.tsx";
import ChatScreen from "../../islands/screens/chat.tsx";
import ChatToLink from "../../islands/screens/chat2link.tsx";
import Login from "../../islands/screens/login.tsx";
import OauthCallback from "../../islands/screens/oauth-callback.tsx";
import Playground from "../../islands/screens/playground.tsx";
import MidjourneyScreen from "../../islands/screens/midjourney.tsx";
import Personal from "../../islands/screens/personal.tsx";
import RegisterScreen from "../../islands/screens/register.tsx";
import RescueScreen from "../../islands/screens/rescue.tsx";
import ResetScreen from "../../islands/screens/reset.tsx";
import UserResetScreen from "../../islands/screens/user-reset.tsx";
import RedemptionScreen from "../../islands/screens/redemption.tsx";
import OrderScreen from "../../islands/screens/order.tsx";
import PlanScreen from "../../islands/screens/plan.tsx";
import PriceDesk from "../../islands/screens/price-desk.tsx";
import SettingScreen from "../../islands/screens/setting.tsx";
import Setup from "../../islands/screens/setup.tsx";
import TaskScreen from "../../islands/screens/task.tsx";
import TokenScreen from "../../islands/screens/token.tsx";
import Wallet from "../../islands/screens/topup.tsx";
import UserScreen from "../../islands/screens/user.tsx";
import { loadDetail } from "./load-detail.ts";
import { loadInbox } from "./load-inbox.ts";
import { loadLogs } from "./load-logs.ts";
import { loadChannels } from "./load-channels.ts";
import { loadChat } from "./load-chat.ts";
import { loadPlayground } from "./load-playground.ts";
import { loadOrders } from "./load-orders.ts";
import { loadPlans } from "./load-plans.ts";
import { loadPersonal } from "./load-personal.ts";
import { loadLegalPlaces } from "./load-legal-places.ts";
import { loadRedemptions } from "./load-redemptions.ts";
import { loadDrawings, loadTasks } from "./load-task-lists.ts";
import { loadTokens } from "./load-tokens.ts";
import { loadPriceDesk } from "./load-price-desk.ts";
import { loadSetting, settingTextKeys } from "./load-setting.ts";
import { loadSetup } from "./load-setup.ts";
import { loadUsers } from "./load-users.ts";
import { loadWallet } from "./load-wallet.ts";
import {
  aboutPage,
  awayPage,
  brokenPage,
  forbiddenInPlaceOf,
  forbiddenPage,
  legalPages,
  maintenancePage,
  notFoundPage,
} from "./plain-pages.tsx";
import { statusPage } from "./status-page.tsx";
import { receiptPage, statementPage } from "./money-papers.tsx";
import type { Moved, Page } from "./page.ts";
import { pricingPage } from "./pricing-view.tsx";
import { homePage } from "./public-pages.tsx";
import { nodePage } from "./node-page.tsx";

export { awayPage, brokenPage, forbiddenInPlaceOf, forbiddenPage, maintenancePage, notFoundPage };

/** Where the human check comes from; its widget loads only while the site asks for one. */
const HUMAN_CHECK = {
  script: ["https://challenges.cloudflare.com"],
  frame: ["https://challenges.cloudflare.com"],
};

/** Chat clients live wherever the operator says. */
const FRAMES = { frame: ["https:", "http:"] };

export const pages: readonly Page[] = [
  // Public
  homePage,
  aboutPage,
  ...legalPages,
  pricingPage,
  forbiddenPage,
  nodePage,
  statusPage,
  {
    path: "/setup",
    shell: "public",
    access: "public",
    title: "setup.title",
    areas: ["setup"],
    screen: { name: "setup", component: Setup },
    loader: loadSetup,
  },
  {
    path: "/login",
    shell: "public",
    width: "card",
    access: "public",
    title: "login.title",
    areas: ["login", "signin"],
    screen: { name: "login", component: Login },
    // WeChat's code may make an account.
    loader: loadLegalPlaces,
    csp: HUMAN_CHECK,
  },
  {
    path: "/oauth/:id",
    shell: "public",
    width: "card",
    access: "public",
    title: "signin.callback.title",
    areas: ["signin", "login"],
    screen: { name: "oauth-callback", component: OauthCallback },
    loader: loadLegalPlaces,
  },
  {
    path: "/register",
    shell: "public",
    width: "card",
    access: "public",
    title: "register.title",
    areas: ["register", "login", "signin"],
    screen: { name: "register", component: RegisterScreen },
    loader: loadLegalPlaces,
    csp: HUMAN_CHECK,
  },
  {
    path: "/reset",
    shell: "public",
    width: "card",
    access: "public",
    title: "reset.title",
    areas: ["reset", "login"],
    screen: { name: "reset", component: ResetScreen },
    csp: HUMAN_CHECK,
  },
  {
    path: "/user/reset",
    shell: "public",
    width: "card",
    access: "public",
    title: "reset.confirmTitle",
    areas: ["reset"],
    screen: { name: "user-reset", component: UserResetScreen },
  },
  {
    path: "/rescue",
    shell: "public",
    width: "card",
    access: "public",
    title: "rescue.title",
    areas: ["rescue"],
    screen: { name: "rescue", component: RescueScreen },
  },
  // Workspace
  {
    path: "/playground",
    shell: "console",
    access: "user",
    title: "shell.nav.playground",
    current: "playground",
    areas: ["playground"],
    screen: { name: "playground", component: Playground },
    loader: loadPlayground,
  },
  ...["/chat", "/chat/:id"].map((path): Page => ({
    path,
    shell: "public",
    width: "full",
    access: "user",
    title: "shell.nav.chat",
    areas: ["chat"],
    screen: { name: "chat", component: ChatScreen },
    loader: loadChat,
    csp: FRAMES,
  })),
  {
    path: "/chat2link",
    shell: "public",
    width: "card",
    access: "user",
    title: "shell.nav.chat",
    areas: ["chat"],
    screen: { name: "chat2link", component: ChatToLink },
    loader: loadChat,
  },
  // Usage
  {
    path: "/detail",
    shell: "console",
    access: "user",
    flag: "enable_data_export",
    title: "shell.nav.dashboard",
    current: "dashboard",
    areas: ["detail", "chart"],
    screen: { name: "detail", component: DetailScreen },
    loader: loadDetail,
  },
  {
    path: "/token",
    shell: "console",
    access: "user",
    title: "shell.nav.tokens",
    current: "tokens",
    areas: ["token"],
    screen: { name: "token", component: TokenScreen },
    loader: loadTokens,
  },
  {
    path: "/log",
    shell: "console",
    access: "user",
    title: "shell.nav.logs",
    current: "logs",
    areas: ["log"],
    screen: { name: "log", component: LogScreen },
    loader: loadLogs,
  },
  {
    path: "/midjourney",
    shell: "console",
    access: "user",
    title: "shell.nav.drawings",
    current: "drawings",
    areas: ["midjourney"],
    screen: { name: "midjourney", component: MidjourneyScreen },
    loader: loadDrawings,
  },
  {
    path: "/task",
    shell: "console",
    access: "user",
    title: "shell.nav.tasks",
    current: "tasks",
    areas: ["task"],
    screen: { name: "task", component: TaskScreen },
    loader: loadTasks,
  },
  // Admin
  {
    path: "/channel",
    shell: "console",
    access: "admin",
    title: "shell.nav.channels",
    current: "channels",
    areas: ["channel"],
    screen: { name: "channel", component: ChannelScreen },
    loader: loadChannels,
  },
  {
    path: "/redemption",
    shell: "console",
    access: "admin",
    title: "shell.nav.redemptions",
    current: "redemptions",
    areas: ["redemption"],
    screen: { name: "redemption", component: RedemptionScreen },
    loader: loadRedemptions,
  },
  {
    path: "/plan",
    shell: "console",
    access: "admin",
    title: "shell.nav.plans",
    current: "plans",
    areas: ["plans"],
    screen: { name: "plan", component: PlanScreen },
    loader: loadPlans,
  },
  {
    path: "/order",
    shell: "console",
    access: "admin",
    title: "shell.nav.orders",
    current: "orders",
    areas: ["order", "topup"],
    screen: { name: "order", component: OrderScreen },
    loader: loadOrders,
  },
  {
    path: "/inbox",
    shell: "console",
    access: "admin",
    title: "shell.nav.inbox",
    current: "inbox",
    areas: ["inbox"],
    screen: { name: "inbox", component: InboxScreen },
    loader: loadInbox,
  },
  {
    path: "/user",
    shell: "console",
    access: "admin",
    title: "shell.nav.users",
    current: "users",
    areas: ["user"],
    screen: { name: "user", component: UserScreen },
    loader: loadUsers,
  },
  {
    path: "/prices",
    shell: "console",
    access: "admin",
    title: "shell.nav.prices",
    current: "prices",
    areas: ["desk", "price", "failure"],
    screen: { name: "price-desk", component: PriceDesk },
    loader: loadPriceDesk,
  },
  {
    path: "/setting",
    shell: "console",
    access: "root",
    title: "shell.nav.settings",
    current: "settings",
    areas: ["setting", "option", "setup", "failure"],
    textKeys: settingTextKeys,
    screen: { name: "setting", component: SettingScreen },
    loader: loadSetting,
  },
  // Personal
  {
    path: "/topup",
    shell: "console",
    access: "user",
    title: "shell.nav.wallet",
    current: "wallet",
    areas: ["topup", "plans"],
    screen: { name: "topup", component: Wallet },
    loader: loadWallet,
  },
  receiptPage,
  statementPage,
  {
    path: "/personal",
    shell: "console",
    access: "user",
    title: "shell.nav.profile",
    current: "profile",
    areas: ["personal", "signin", "topup"],
    screen: { name: "personal", component: Personal },
    loader: loadPersonal,
  },
];

/** Addresses that open a drawer of a list, or another page. */
export const moved: readonly Moved[] = [
  { path: "/channel/add", access: "admin", to: () => "/channel?new=1" },
  {
    path: "/channel/edit/:id",
    access: "admin",
    to: ({ id }) => `/channel?edit=${encodeURIComponent(id ?? "")}`,
  },
  { path: "/user/edit/:id", access: "admin", to: ({ id }) => `/user?edit=${encodeURIComponent(id ?? "")}` },
  // One's own account.
  { path: "/user/edit", access: "user", to: () => "/personal" },
];
