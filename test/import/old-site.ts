// A small site of a later product as a SQLite file, with a row of each kind: for the procedure of an import, whatever its rows.
// Refuses to be the published schema: tables have the columns that rows here name.
import { Database } from "bun:sqlite";

export const OLD_NOW = Date.UTC(2026, 10, 20, 12, 30) / 1000;
const DAY = 86_400;
const HOUR = 3600;

type Row = Readonly<Record<string, string | number | null>>;

/** Rows by table; `extra` replaces tables. */
function tablesOf(logRows: number): Record<string, Row[]> {
  const logs = Array.from({ length: logRows }, (_, index): Row => ({
    id: index + 1,
    user_id: index % 7 === 0 ? 0 : (index % 3) + 1,
    created_at: OLD_NOW - 40 * DAY + index * HOUR,
    type: index % 11 === 0 ? 6 : 2,
    content: `row ${index}`,
    username: "ann",
    token_name: "one",
    model_name: index % 2 === 0 ? "gpt-4o" : "claude-3-opus",
    quota: 10 + index,
    prompt_tokens: 100,
    completion_tokens: 20,
    use_time: 2,
    is_stream: 1,
    channel_id: 1,
    token_id: 1,
    group: "default",
    ip: "",
    other: '{"model_ratio":1.25}',
    request_id: `req-${index}`,
  }));
  const user = {
    password: "",
    status: 1,
    email: "",
    quota: 500,
    used_quota: 400,
    request_count: 9,
    group: "default",
    deleted_at: null,
  };
  const task = {
    platform: "suno",
    user_id: 2,
    channel_id: 1,
    quota: 70,
    action: "MUSIC",
    submit_time: OLD_NOW,
    private_data: null,
  };
  const order = {
    user_id: 2,
    amount: 10,
    money: 73,
    create_time: OLD_NOW - DAY,
    complete_time: 0,
    status: "success",
  };
  return {
    users: [
      {
        ...user,
        id: 1,
        username: "root",
        role: 100,
        access_token: "root-token",
        inviter_id: 0,
        github_id: "1234",
        setting: null,
      },
      {
        ...user,
        id: 2,
        username: "ann",
        role: 1,
        access_token: null,
        inviter_id: 1,
        github_id: "ann-login",
        setting: "{}",
      },
      {
        ...user,
        id: 3,
        username: "bob",
        role: 1,
        access_token: "",
        inviter_id: 0,
        github_id: "",
        setting: "",
      },
      {
        ...user,
        id: 9,
        username: "gone",
        role: 1,
        access_token: "",
        inviter_id: 0,
        github_id: "",
        setting: "",
        deleted_at: "2026-01-01 00:00:00",
      },
    ],
    tokens: [
      {
        id: 1,
        user_id: 2,
        key: "ann-key-of-48",
        status: 1,
        name: "one",
        remain_quota: 300,
        used_quota: 50,
        unlimited_quota: 0,
        model_limits: "",
        model_limits_enabled: 0,
        deleted_at: null,
        expired_time: -1,
      },
      {
        id: 2,
        user_id: 3,
        key: "bobkey",
        status: 1,
        name: "two",
        remain_quota: 0,
        used_quota: 0,
        unlimited_quota: 1,
        model_limits: "",
        model_limits_enabled: 0,
        deleted_at: null,
        expired_time: -1,
      },
    ],
    channels: [
      {
        id: 1,
        type: 1,
        key: "sk-up-1\nsk-up-2",
        status: 1,
        name: "main",
        models: "gpt-4o,claude-3-opus",
        group: "default,vip",
        used_quota: 999,
        channel_info: '{"is_multi_key":true}',
        base_url: "http://127.0.0.1:1",
        priority: 0,
        weight: 0,
      },
    ],
    abilities: [
      { group: "default", model: "gpt-4o", channel_id: 1, enabled: 1, priority: 0, weight: 0, tag: "" },
    ],
    options: [
      { key: "ModelRatio", value: '{"gpt-4o":1.25,"claude-3-opus":7.5}' },
      { key: "ModelPrice", value: "{}" },
      { key: "SystemName", value: "Old" },
      { key: "SMTPToken", value: "letter-secret" },
    ],
    logs,
    quota_data: [
      {
        id: 1,
        user_id: 2,
        username: "ann",
        model_name: "gpt-4o",
        created_at: OLD_NOW - 90 * DAY,
        token_used: 9,
        count: 2,
        quota: 30,
      },
      {
        id: 2,
        user_id: 2,
        username: "ann",
        model_name: "gpt-4o",
        created_at: OLD_NOW - DAY,
        token_used: 9,
        count: 2,
        quota: 30,
      },
    ],
    redemptions: [{ id: 1, user_id: 1, key: "code", status: 1, name: "gift", quota: 100, deleted_at: null }],
    top_ups: [
      { ...order, id: 1, trade_no: "T1", payment_method: "alipay" },
      { ...order, id: 2, trade_no: "P1", payment_method: "stripe" },
    ],
    subscription_plans: [
      {
        id: 1,
        title: "Pro",
        price_amount: 9.99,
        currency: "USD",
        duration_unit: "month",
        duration_value: 1,
        total_amount: 1000,
        enabled: 1,
        upgrade_group: "vip",
        quota_reset_period: "daily",
      },
    ],
    subscription_orders: [{ ...order, id: 1, plan_id: 1, trade_no: "P1", payment_method: "stripe" }],
    user_subscriptions: [
      {
        id: 4,
        user_id: 2,
        plan_id: 1,
        amount_total: 1000,
        amount_used: 300,
        start_time: OLD_NOW - DAY,
        end_time: OLD_NOW + 20 * DAY,
        status: "active",
        next_reset_time: OLD_NOW + 11 * HOUR + 1800,
        upgrade_group: "vip",
        prev_user_group: "default",
      },
    ],
    two_fas: [{ id: 1, user_id: 1, secret: "JBSWY3DPEHPK3PXP", is_enabled: 1, deleted_at: null }],
    two_fa_backup_codes: [
      { id: 1, user_id: 1, code_hash: `$2a$10$${"a".repeat(53)}`, is_used: 0, deleted_at: null },
    ],
    passkey_credentials: [{ id: 1, user_id: 2, credential_id: "AQID", public_key: "pQEC", deleted_at: null }],
    custom_oauth_providers: [
      {
        id: 1,
        name: "Own",
        slug: "own",
        enabled: 0,
        client_id: "c",
        client_secret: "s",
        authorization_endpoint: "https://i.example/a",
        token_endpoint: "https://i.example/t",
        user_info_endpoint: "https://i.example/u",
      },
    ],
    user_oauth_bindings: [{ id: 1, user_id: 2, provider_id: 1, provider_user_id: "sub" }],
    midjourneys: [
      {
        id: 1,
        user_id: 2,
        action: "IMAGINE",
        mj_id: "m",
        status: "",
        progress: "50%",
        quota: 60,
        channel_id: 1,
        submit_time: OLD_NOW * 1000,
      },
    ],
    tasks: [
      { ...task, id: 1, task_id: "t1", status: "IN_PROGRESS", progress: "20%" },
      { ...task, id: 2, task_id: "t2", status: "SUCCESS", progress: "100%", platform: "36" },
    ],
    models: [{ id: 1, model_name: "gpt-4o" }],
    fork_things: [{ id: 1, what: "a fork's own" }],
  };
}

/** Writes the file; whole numbers, texts and nulls go in as they are. */
export function writeOldSite(path: string, logRows = 60): void {
  const file = new Database(path, { create: true });
  file.run("begin");
  for (const [table, rows] of Object.entries(tablesOf(logRows))) {
    const columns = Object.keys(rows[0] ?? {});
    const names = columns.map((column) => `"${column}"${column === "id" ? " integer primary key" : ""}`);
    file.run(`create table "${table}" (${names.join(", ")})`);
    const insert = file.prepare(`insert into "${table}" values (${columns.map(() => "?").join(", ")})`);
    for (const row of rows) insert.run(...columns.map((column) => row[column] ?? null));
  }
  file.run("commit");
  file.close();
}
