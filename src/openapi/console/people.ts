// The console's calls about people: sign-in, the own account and wallet, keys, and the administration of users.
import { payments } from "./payments.ts";
import type { ConsoleOperation } from "../schema.ts";

const setting = {
  notify_type: "email",
  quota_warning_threshold: 500_000,
  notification_email: "me@example.org",
};

const RETURN_FIELDS = {
  code: "What the provider gave.",
  state: "As the flow began.",
  iss: "The issuer, where the provider names it.",
  error: "Why the provider refused.",
  error_description: "The same in words.",
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
  ...payments,
  "POST /api/user/login/2fa": {
    tag: "Account",
    summary: "Second step of a sign-in, by code",
    description: "A one-time code, or one of the backup codes.",
    body: { flow_token: "0f3c5a1b2d4e6f708192a3b4c5d6e7f8", code: "123456" },
  },
  "GET /api/user/2fa/status": { tag: "Account", summary: "Show the state of one-time codes" },
  "POST /api/user/2fa/setup": {
    tag: "Account",
    summary: "Begin to set up one-time codes",
    description: "Answers the secret, which is in force once a code has proven that it was read.",
  },
  "POST /api/user/2fa/enable": {
    tag: "Account",
    summary: "Switch one-time codes on",
    description: "Answers the backup codes, once.",
    body: { flow_token: "0f3c5a1b2d4e6f708192a3b4c5d6e7f8", code: "123456" },
  },
  "POST /api/user/2fa/disable": { tag: "Account", summary: "Switch one-time codes off" },
  "POST /api/user/2fa/backup_codes": { tag: "Account", summary: "Make new backup codes" },
  "GET /api/user/passkey/": { tag: "Account", summary: "List the own passkeys" },
  "POST /api/user/passkey/register/begin": { tag: "Account", summary: "Begin to register a passkey" },
  "POST /api/user/passkey/register/finish": {
    tag: "Account",
    summary: "Register a passkey",
    body: { flow_token: "0f3c5a1b2d4e6f708192a3b4c5d6e7f8", response: {}, name: "Laptop" },
  },
  "POST /api/user/passkey/login/begin": { tag: "Account", summary: "Begin to sign in with a passkey" },
  "POST /api/user/passkey/login/finish": {
    tag: "Account",
    summary: "Sign in with a passkey",
    description: "With `flow_token_2fa` as the second step of a sign-in by another method.",
    body: { flow_token: "0f3c5a1b2d4e6f708192a3b4c5d6e7f8", response: {} },
  },
  "POST /api/user/passkey/verify/begin": { tag: "Account", summary: "Begin to prove oneself with a passkey" },
  "PUT /api/user/passkey/{id}": { tag: "Account", summary: "Rename a passkey", body: { name: "Laptop" } },
  "DELETE /api/user/passkey/{id}": { tag: "Account", summary: "Remove a passkey" },
  "POST /api/verify": {
    tag: "Account",
    summary: "Prove afresh who is here",
    description:
      "Before what answers 403 `verification_required`; `data.methods` of that answer says by what.",
    body: { method: "password", password: "correct horse" },
  },
  "DELETE /api/user/{id}/2fa": { tag: "Users", summary: "Reset a user's one-time codes" },
  "DELETE /api/user/{id}/reset_passkey": { tag: "Users", summary: "Remove a user's passkeys" },
  "POST /api/user/rescue": {
    tag: "Account",
    summary: "Sign in by a link of weir rescue",
    description: "Once, within ten minutes, without a second factor; lifts what wrong tries have locked.",
    body: { token: "0f3c5a1b2d4e6f708192a3b4c5d6e7f80f3c5a1b2d4e6f708192a3b4c5d6e7f8" },
  },
  "POST /api/oauth/start": {
    tag: "Account",
    summary: "Begin a sign-in by a provider",
    description:
      "Answers the provider's address and sets a cookie that binds its state to this browser. The intents `bind` and `verify` need " +
      "the session and New-Api-User, and a page of this site.",
    body: { provider: "github", intent: "signin", next: "/token", aff: "", accept_terms: true },
    answer: { success: true, message: "", data: { url: "https://github.com/login/oauth/authorize?state=…" } },
  },
  "GET /api/oauth/state": {
    tag: "Account",
    summary: "A state for consoles that build a provider's address themselves",
    fields: { aff: "Invitation code." },
  },
  "GET /api/oauth/{id}": {
    tag: "Account",
    summary: "Return from a provider",
    description:
      "Signs in, registers, binds or proves again, as the flow began; the state works once, in the browser that began it.",
    fields: RETURN_FIELDS,
  },
  "POST /api/oauth/{id}": {
    tag: "Account",
    summary: "Return from a provider",
    description: "The same with the parameters in the body.",
    body: { code: "4/0AX4…", state: "q3Zr8w…" },
  },
  "GET /api/oauth/wechat": {
    tag: "Account",
    summary: "Sign in by a WeChat code",
    description: "By a call of a page of the site; a link does not sign in.",
    fields: {
      code: "What the account answered.",
      aff: "Invitation code.",
      accept_terms: "`true`: the terms are accepted.",
    },
  },
  "GET /api/oauth/wechat/bind": {
    tag: "Account",
    summary: "Bind WeChat to the own account",
    fields: { code: "What the account answered." },
  },
  "GET /api/oauth/telegram/login": {
    tag: "Account",
    summary: "Sign in by Telegram's signed result",
    description:
      "The query is what Telegram answered, as it stands. Only where this browser began it (`POST /api/oauth/start`), by a call of a page of the site.",
  },
  "GET /api/oauth/email/bind": {
    tag: "Account",
    summary: "Set the own address",
    description:
      "By the code that went to it. A change asks for a fresh proof, and the old address hears of it.",
    fields: { code: "What the letter said." },
  },
  "POST /api/oauth/email/bind": {
    tag: "Account",
    summary: "Set the own address",
    description:
      "By the code that went to it. A change asks for a fresh proof, and the old address hears of it.",
    body: { email: "ada@example.org", code: "123456" },
  },
  "GET /api/oauth/telegram/bind": { tag: "Account", summary: "Bind Telegram to the own account" },
  "GET /api/user/oauth/bindings": {
    tag: "Account",
    summary: "The own bindings to providers",
    description: "Every provider that is on, and those that are off but bound.",
  },
  "DELETE /api/user/oauth/bindings/{provider}": {
    tag: "Account",
    summary: "Give up a binding",
    description: "Refused where it is the last way in.",
  },
  "GET /api/user/{id}/oauth/bindings": { tag: "Users", summary: "A user's bindings to providers" },
  "DELETE /api/user/{id}/oauth/bindings/{provider}": { tag: "Users", summary: "Undo a user's binding" },
  "GET /api/user/logout": {
    tag: "Account",
    summary: "Sign out",
    description: "Refused where a page of another site asks for it.",
  },
  "GET /api/user/self": { tag: "Account", summary: "Show the own account" },
  "GET /api/user/self/limits": {
    tag: "Account",
    summary: "Show the budget and the limits in force for the own account",
    description:
      "Over all keys: the account's own, else its group's, else everybody's; those of a key count beside them, and the narrowest " +
      "refuses. 0 is no such limit; null where there is none at all. `budget_used` is what is spent of the budget in this period, " +
      "`budget_resets_at` (Unix seconds) when the next begins.",
  },
  "PUT /api/user/self": {
    tag: "Account",
    summary: "Change the own account",
    description: "A new password ends every other session.",
    body: { display_name: "Ada", original_password: "correct horse", password: "battery staple" },
  },
  "DELETE /api/user/self": {
    tag: "Account",
    summary: "Delete the own account",
    description:
      "With `erase` name, address and texts go for good and the books stay; it needs fresh proof of who asks.",
    body: { erase: true },
  },
  "GET /api/user/self/export": {
    tag: "Account",
    summary: "All that the site has of the caller, as one JSON file",
    description: "Without secrets, as a stream. Needs fresh proof of who asks.",
    file: "A member for each kind of row: the account, keys, orders, the log and so on.",
  },
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
      "`auto_groups` (at most ten, separated by commas), where the key names some, else of the site's own order. `max_quota` is the most that one call may cost, " +
      "in units: a call is never charged above it; 0 is no cap. `budget_quota` is what the key may spend in a day, week (from Monday) or " +
      "month of the site's zone, as `budget_period` says; `rpm_limit` and `tpm_limit` are requests and tokens in any 60 seconds, " +
      "`max_concurrency` calls at once: 0 is no limit. A call above one is refused with 429 `budget_exceeded` or `key_limit_exceeded`. " +
      "The answer's `budget_used` is what is spent in this period, `budget_resets_at` (Unix seconds) when the next begins.",
    body: {
      name: "laptop",
      remain_quota: 500_000,
      expired_time: -1,
      unlimited_quota: false,
      budget_quota: 2_500_000,
      budget_period: "day",
      rpm_limit: 60,
    },
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
        max_quota: 0,
        budget_quota: 2_500_000,
        budget_period: "day",
        budget_used: 0,
        budget_resets_at: 1_767_225_600,
        rpm_limit: 0,
        tpm_limit: 0,
        max_concurrency: 0,
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
  "GET /api/user/sessions": {
    tag: "Account",
    summary: "List the own devices",
    description: "The one at hand first. An id is good for signing that device out and nothing else.",
  },
  "DELETE /api/user/sessions/{id}": { tag: "Account", summary: "Sign out a device" },
  "POST /api/user/sessions/revoke-others": {
    tag: "Account",
    summary: "Sign out all other devices",
    description: "Accounts with a second factor prove themselves afresh first.",
  },
  "POST /api/user/{id}/sessions/revoke": { tag: "Users", summary: "Sign a user out everywhere" },
  "GET /api/user/ceiling": {
    tag: "Users",
    summary: "What of balances may still be changed today",
    description: "In units of quota; null: no ceiling.",
  },
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
  "GET /api/user/{id}/limits": {
    tag: "Users",
    summary: "Show the budget and the limits in force for a user",
    description: "As GET /api/user/self/limits.",
  },
  "POST /api/user/": {
    tag: "Users",
    summary: "Make a user",
    body: { username: "grace", password: "correct horse", display_name: "Grace" },
  },
  "PUT /api/user/": {
    tag: "Users",
    summary: "Change a user",
    description:
      "`quota_change` is added to the balance, `quota` replaces it. `limits` are the user's own budget and limits over all keys, with the " +
      "fields of a key: one that is absent stays as it is, null follows the group's and everybody's (options KeyLimitsGroup and " +
      "KeyLimitsDefault), 0 is no limit; `limits: null` follows in all. A name that is no limit is refused.",
    body: { id: 3, group: "vip", quota_change: 500_000 },
  },
  "POST /api/user/manage": {
    tag: "Users",
    summary: "Disable, enable, promote, demote or delete a user",
    body: { id: 3, action: "disable" },
    answer: { success: true, message: "", data: { role: 1, status: 2 } },
  },
  "DELETE /api/user/{id}": { tag: "Users", summary: "Delete a user" },
  "POST /api/user/bulk": {
    tag: "Users",
    summary: "Do something to many accounts",
    description:
      "In the background. `ids`, or `filter` with the `count` that was confirmed. Answers the id of the run.",
    body: { action: "credit", ids: [2, 3], amount: 500_000, reason: "An outage" },
  },
  "GET /api/user/bulk": { tag: "Users", summary: "List the latest runs over many accounts" },
  "GET /api/user/bulk/{id}": { tag: "Users", summary: "Show how far a run over many accounts is" },
  "POST /api/user/import": {
    tag: "Users",
    summary: "Make and change accounts by a CSV file",
    description:
      "Columns id, username, email, display_name, password, group, remark, credit_usd. Without `plan` nothing is written: the answer says what the file would do and what is wrong by line. With the `plan` of that answer it begins a run.",
    body: {
      csv: "username,email,group,credit_usd\ngrace,grace@example.org,vip,5\n",
      reason: "Spring course",
    },
  },
  "GET /api/user/export": {
    tag: "Users",
    summary: "Accounts as a CSV file",
    description: "The filters of the search. Times are UTC, amounts dollars; the order is that of the ids.",
    csv: "An account.",
  },
  "PUT /api/user/{id}/notes": {
    tag: "Users",
    summary: "Write the remark and the mark of an account",
    description: "The owner sees neither.",
    body: { remark: "Pays by invoice", flagged: true },
  },
};
