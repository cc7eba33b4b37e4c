// The console's calls about people: sign-in, the own account and wallet, keys, and the administration of users.
import type { ConsoleOperation } from "../schema.ts";

const setting = {
  notify_type: "email",
  quota_warning_threshold: 500_000,
  notification_email: "me@example.org",
};

export const people: Readonly<Record<string, ConsoleOperation>> = {
  "POST /api/user/login": {
    tag: "Account",
    summary: "Sign in",
    description: "Sets the session cookie. Too many wrong passwords are refused with status 429.",
    body: { username: "ada", password: "correct horse" },
    answer: {
      success: true,
      message: "",
      data: { id: 2, username: "ada", display_name: "Ada", role: 1, status: 1, group: "default" },
      default_credentials: false,
    },
  },
  "GET /api/verification": {
    tag: "Account",
    summary: "Send a code to an address",
    description: "One letter in any case: an address that has an account is told so there, and nowhere else.",
  },
  "POST /api/user/register": {
    tag: "Account",
    summary: "Register",
    description: "Makes an ordinary account; it is not signed in by this.",
    body: {
      username: "ada",
      password: "correct horse",
      email: "ada@example.org",
      verification_code: "123456",
      aff_code: "Zk7q",
      accept_terms: true,
    },
    answer: { success: true, message: "" },
  },
  "GET /api/reset_password": {
    tag: "Account",
    summary: "Send a link to reset a password",
    description: "Answers alike whether the address has an account or not.",
  },
  "POST /api/user/reset": {
    tag: "Account",
    summary: "Reset a password",
    description: "Answers the new password where none was sent. Ends every session and the access token.",
    body: { email: "ada@example.org", token: "0f3c5a1b2d4e6f708192a3b4c5d6e7f8" },
    answer: { success: true, message: "", data: "qW3rTy7uPa9s" },
  },
  "POST /api/user/rescue": {
    tag: "Account",
    summary: "Sign in by a link of weir rescue",
    description: "Once, within ten minutes, without a second factor; lifts what wrong tries have locked.",
    body: { token: "0f3c5a1b2d4e6f708192a3b4c5d6e7f80f3c5a1b2d4e6f708192a3b4c5d6e7f8" },
  },
  "GET /api/user/logout": {
    tag: "Account",
    summary: "Sign out",
    description: "Refused where a page of another site asks for it.",
  },
  "GET /api/user/self": { tag: "Account", summary: "Show the own account" },
  "PUT /api/user/self": {
    tag: "Account",
    summary: "Change the own account",
    description: "A new password ends every other session.",
    body: { display_name: "Ada", original_password: "correct horse", password: "battery staple" },
  },
  "DELETE /api/user/self": { tag: "Account", summary: "Delete the own account" },
  "GET /api/user/token": {
    tag: "Account",
    summary: "Make a new access token",
    description: "Shown this once; the one before ends.",
  },
  "POST /api/user/topup": {
    tag: "Wallet",
    summary: "Redeem a code",
    description: "Answers the quota that it was worth.",
    body: { key: "0f3c5a1b2d4e6f708192a3b4c5d6e7f8" },
    answer: { success: true, message: "", data: 500_000 },
  },
  "POST /api/user/topup/batch": {
    tag: "Wallet",
    summary: "Redeem several codes",
    description: "Each has an answer of its own.",
    body: { keys: ["0f3c5a1b2d4e6f708192a3b4c5d6e7f8"] },
  },
  "GET /api/user/aff": { tag: "Wallet", summary: "The own invitation code" },
  "POST /api/user/aff_transfer": {
    tag: "Wallet",
    summary: "Move rewards for invitations to the balance",
    body: { quota: 500_000 },
  },
  "PUT /api/user/setting": { tag: "Wallet", summary: "Save the own settings", body: setting },
  "POST /api/user/setting/test": {
    tag: "Wallet",
    summary: "Send a test notice",
    description: "The way the body says, without saving it; five in ten minutes.",
    body: setting,
  },
  "GET /api/token/": {
    tag: "Keys",
    summary: "List the own keys",
    fields: { p: "Page; the first is 0." },
  },
  "GET /api/token/search": {
    tag: "Keys",
    summary: "Search the own keys",
    description: "Every match, up to 1000, where no page is asked for.",
    fields: { p: "Page; the first is 0.", token: "The key, or its first or last four characters." },
  },
  "GET /api/token/{id}": { tag: "Keys", summary: "Show a key of one's own" },
  "POST /api/token/": {
    tag: "Keys",
    summary: "Make a key",
    description:
      "The answer has it without `sk-`. With the group `auto` each call takes the first group that has a channel for its model: of " +
      "`auto_groups` (at most ten, separated by commas), where the key names some, else of the site's own order.",
    body: { name: "laptop", remain_quota: 500_000, expired_time: -1, unlimited_quota: false },
    answer: {
      success: true,
      message: "",
      data: {
        id: 7,
        user_id: 2,
        key: "q3Zr8w…",
        status: 1,
        name: "laptop",
        created_time: 1_750_000_000,
        accessed_time: 1_750_000_000,
        expired_time: -1,
        remain_quota: 500_000,
        unlimited_quota: false,
        model_limits_enabled: false,
        model_limits: "",
        allow_ips: "",
        used_quota: 0,
        group: "",
        auto_groups: "",
        previous_until: 0,
        DeletedAt: null,
      },
    },
  },
  "PUT /api/token/": {
    tag: "Keys",
    summary: "Change a key, or switch it on and off",
    body: { id: 7, name: "laptop", unlimited_quota: true },
    fields: { status_only: "Not empty: only the status is changed." },
  },
  "POST /api/token/{id}/rotate": {
    tag: "Keys",
    summary: "Give a key a new secret",
    description:
      "Settings, limits and history stay. The secret before is taken for `grace_seconds` more, 0 to 30 days; one from before that is not.",
    body: { grace_seconds: 86_400 },
    answer: { success: true, message: "", data: { key: "q3Zr8w…", previous_until: 1_795_000_000 } },
  },
  "DELETE /api/token/{id}": { tag: "Keys", summary: "Delete a key" },
  "GET /api/user/": { tag: "Users", summary: "List users", fields: { p: "Page; the first is 1." } },
  "GET /api/user/search": {
    tag: "Users",
    summary: "Search users",
    fields: { p: "Page; the first is 1.", keyword: "Id, or a piece of name, display name or address." },
  },
  "GET /api/user/{id}": { tag: "Users", summary: "Show a user" },
  "GET /api/user/{id}/keys": {
    tag: "Users",
    summary: "Names and figures of a user's keys",
    description: "Never the keys.",
  },
  "POST /api/user/": {
    tag: "Users",
    summary: "Make a user",
    body: { username: "grace", password: "correct horse", display_name: "Grace" },
  },
  "PUT /api/user/": {
    tag: "Users",
    summary: "Change a user",
    description: "`quota_change` is added to the balance, `quota` replaces it.",
    body: { id: 3, group: "vip", quota_change: 500_000 },
  },
  "POST /api/user/manage": {
    tag: "Users",
    summary: "Disable, enable, promote, demote or delete a user",
    body: { id: 3, action: "disable" },
    answer: { success: true, message: "", data: { role: 1, status: 2 } },
  },
  "DELETE /api/user/{id}": { tag: "Users", summary: "Delete a user" },
};
