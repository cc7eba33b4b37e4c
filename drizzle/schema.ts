// The one schema source: every table of the product, built once for each database.
// Times are unix seconds unless a name says Ms; quota columns are whole units and written by core/ledger only.
import { sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";

export function buildSchema(d: Dialect) {
  const users = d.table(
    "users",
    {
      id: d.id(),
      username: d.text().notNull(),
      /** The name folded (core/users/folding.ts): two names that look alike to people are one. */
      usernameKey: d.text().notNull().default(""),
      passwordHash: d.text().notNull().default(""),
      displayName: d.text().notNull().default(""),
      role: d.int().notNull().default(1),
      status: d.int().notNull().default(1),
      /** Where letters go: as it was proven, never as somebody types it later. */
      email: d.text().notNull().default(""),
      /** The address folded; of deleted accounts too, so that nobody takes it over. */
      emailKey: d.text().notNull().default(""),
      /** 32 random bytes (base64url): what a passkey knows the account by. */
      passkeyHandle: d.text().notNull().default(""),
      /** Of the terms and the privacy notice that were accepted: a hash of their text, and when. */
      termsVersion: d.text().notNull().default(""),
      termsAcceptedAt: d.big().notNull().default(0),
      /** SHA-256 of the system access token; the token itself is shown once. */
      accessTokenHash: d.text(),
      quota: d.big().notNull().default(0),
      usedQuota: d.big().notNull().default(0),
      requestCount: d.big().notNull().default(0),
      group: d.text().notNull().default("default"),
      affCode: d.text(),
      affCount: d.int().notNull().default(0),
      affQuota: d.big().notNull().default(0),
      /** Units that whoever invited this account gets with its first paid order; 0: nothing, or given already. */
      inviteReward: d.big().notNull().default(0),
      affHistoryQuota: d.big().notNull().default(0),
      inviterId: d.big().notNull().default(0),
      /** used_quota when use was last shared out among plans and wallet. */
      planMark: d.big().notNull().default(0),
      /** What of the balance is no plan's; what plans have left is the rest. Holds while plan_until is not 0. */
      planWallet: d.big().notNull().default(0),
      /** A running plan keeps calls from the wallet. */
      planStrict: d.bool().notNull().default(false),
      /** When a period ends or a plan begins next; 0: no plan. */
      planUntil: d.big().notNull().default(0),
      /** Group of the newest running plan that has one; empty: the account's own. */
      planGroup: d.text().notNull().default(""),
      /** JSON text of the user's own settings. */
      setting: d.text().notNull().default(""),
      /** Has one-time codes or a passkey: what sessions are judged by, without a query. */
      secondFactor: d.bool().notNull().default(false),
      /** JSON text of budget and limits that administrators gave the user; empty: those of the group (shared/key-limits.ts). */
      limits: d.text().notNull().default(""),
      /** Raised to end every session of the user at once. */
      sessionVersion: d.int().notNull().default(1),
      /** What administrators note about the account; never shown to its owner. */
      remark: d.text().notNull().default(""),
      /** Marked for another look, by a disputed payment or an administrator: its keys are refused meanwhile. */
      flagged: d.bool().notNull().default(false),
      createdAt: d.big().notNull().default(0),
      /** In the console, in steps of five minutes (core/users/session-rows.ts); keys have their own. */
      lastSeenAt: d.big().notNull().default(0),
      deletedAt: d.big(),
      /** Name, address and texts were removed at the owner's wish; the books stay. */
      erasedAt: d.big(),
    },
    (t) => [
      d.uniqueIndex("users_username").on(t.username),
      d.uniqueIndex("users_access_token").on(t.accessTokenHash),
      d.uniqueIndex("users_aff_code").on(t.affCode),
      d
        .uniqueIndex("users_username_key")
        .on(t.usernameKey)
        .where(sql`${t.usernameKey} <> ''`),
      d
        .uniqueIndex("users_email_key")
        .on(t.emailKey)
        .where(sql`${t.emailKey} <> ''`),
      d.index("users_inviter").on(t.inviterId),
      d.index("users_quota").on(t.quota),
      d.index("users_group").on(t.group),
      d.index("users_seen").on(t.lastSeenAt),
      d
        .index("users_plan_until")
        .on(t.planUntil)
        .where(sql`${t.planUntil} > 0`),
      d
        .index("users_staff")
        .on(t.role)
        .where(sql`${t.role} >= 10`),
      d
        .index("users_flagged")
        .on(t.id)
        .where(sql`${t.flagged}`),
    ],
  );

  /** Sign-in identities of third parties; provider is the id of a built-in row, or a custom provider's slug. */
  const identities = d.table(
    "identities",
    {
      id: d.id(),
      userId: d.big().notNull(),
      provider: d.text().notNull(),
      subject: d.text().notNull(),
      /** What people know the foreign account by: a login or a name. */
      label: d.text().notNull().default(""),
      /** Imported by a login name, which counts once (identity.md 3.7). */
      legacy: d.bool().notNull().default(false),
      createdAt: d.big().notNull().default(0),
      lastUsedAt: d.big().notNull().default(0),
    },
    (t) => [
      d.uniqueIndex("identities_subject").on(t.provider, t.subject),
      d.uniqueIndex("identities_user").on(t.userId, t.provider),
    ],
  );

  /** One row for each sign-in; a session ends with its row, or with the user's session version. */
  const sessions = d.table(
    "sessions",
    {
      /** 128 random bits in hex: the `sid` of the cookie. Never shown. */
      id: d.text().primaryKey(),
      userId: d.big().notNull(),
      sessionVersion: d.int().notNull(),
      /** password, later passkey, provider, … */
      method: d.text().notNull(),
      provider: d.text().notNull().default(""),
      ip: d.text().notNull().default(""),
      lastIp: d.text().notNull().default(""),
      /** The first 256 characters. */
      userAgent: d.text().notNull().default(""),
      createdAt: d.big().notNull(),
      /** In steps of five minutes. */
      lastSeenAt: d.big().notNull(),
      expiresAt: d.big().notNull(),
      /** Until when the session counts as freshly proven. */
      sudoUntil: d.big().notNull().default(0),
      revokedAt: d.big(),
      /** Why it was revoked: signed_out, password, banned, … */
      reason: d.text().notNull().default(""),
    },
    (t) => [
      d.index("sessions_user").on(t.userId),
      d.index("sessions_expiry").on(t.expiresAt),
      d
        .index("sessions_revoked")
        .on(t.revokedAt)
        .where(sql`${t.revokedAt} is not null`),
    ],
  );

  /**
   * Prices of models as they were taken from a source: what an offer of the source is compared with. A name here that has
   * no price in force is one that was taken away, and is not added again.
   */
  const priceOrigins = d.table("price_origins", {
    name: d.text().primaryKey(),
    /** JSON of the row in dollars (shared/price-row.ts). */
    price: d.text().notNull(),
    /** shipped, or whose prices they are; own: an operator's that was taken away, kept so that nobody adds it again. */
    source: d.text().notNull(),
    version: d.text().notNull().default(""),
    takenAt: d.big().notNull(),
  });

  /** Browsers in which somebody signed in to an account: strangers' wrong passwords do not lock them out. */
  const userDevices = d.table(
    "user_devices",
    {
      userId: d.big().notNull(),
      /** SHA-256 (hex) of the random id in the signed cookie `device`. */
      hash: d.text().notNull(),
      lastSeenAt: d.big().notNull(),
    },
    (t) => [d.primaryKey({ columns: [t.userId, t.hash] })],
  );

  /** What a guest has begun and must end here: codes, reset links, later states and challenges. No secret in clear. */
  const authFlows = d.table(
    "auth_flows",
    {
      id: d.id(),
      /** email_code, reset; later oauth, login_2fa, passkey, … */
      kind: d.text().notNull(),
      /** SHA-256 of a long secret; of a short code a keyed hash with its kind and subject. */
      secretHash: d.text().notNull(),
      /** Whom limits count for: a folded address, or an account. */
      subjectKey: d.text().notNull().default(""),
      userId: d.big().notNull().default(0),
      sessionId: d.text().notNull().default(""),
      provider: d.text().notNull().default(""),
      browserHash: d.text().notNull().default(""),
      /** Sealed. */
      payload: d.text().notNull().default(""),
      /** Wrong tries. */
      attempts: d.int().notNull().default(0),
      createdAt: d.big().notNull(),
      expiresAt: d.big().notNull(),
      usedAt: d.big(),
    },
    (t) => [
      d.uniqueIndex("auth_flows_secret").on(t.secretHash),
      d.index("auth_flows_subject").on(t.kind, t.subjectKey, t.createdAt),
      d.index("auth_flows_expiry").on(t.expiresAt),
    ],
  );

  /** One-time codes by time (RFC 6238): a row is a factor in force; what is being set up stands in auth_flows. */
  const totps = d.table("totps", {
    userId: d.big().primaryKey(),
    secretSealed: d.text().notNull(),
    /** The last step that was used: only greater ones count. */
    lastStep: d.big().notNull().default(0),
    /** Wrong codes since the last right one, over all flows. */
    wrong: d.int().notNull().default(0),
    wrongSince: d.big().notNull().default(0),
    /** How often it was locked since the last right code: the time doubles. */
    locks: d.int().notNull().default(0),
    lockedUntil: d.big().notNull().default(0),
    createdAt: d.big().notNull(),
  });

  const backupCodes = d.table(
    "backup_codes",
    {
      id: d.id(),
      userId: d.big().notNull(),
      /** Keyed hash. */
      hash: d.text().notNull(),
      usedAt: d.big(),
    },
    (t) => [d.uniqueIndex("backup_codes_hash").on(t.hash), d.index("backup_codes_user").on(t.userId)],
  );

  const passkeys = d.table(
    "passkeys",
    {
      id: d.id(),
      userId: d.big().notNull(),
      /** base64url, as browsers send it. */
      credentialId: d.text().notNull(),
      /** COSE key, base64url. */
      publicKey: d.text().notNull(),
      counter: d.big().notNull().default(0),
      /** Separated by commas. */
      transports: d.text().notNull().default(""),
      deviceType: d.text().notNull().default(""),
      backedUp: d.bool().notNull().default(false),
      aaguid: d.text().notNull().default(""),
      name: d.text().notNull().default(""),
      createdAt: d.big().notNull(),
      lastUsedAt: d.big().notNull().default(0),
    },
    (t) => [d.uniqueIndex("passkeys_credential").on(t.credentialId), d.index("passkeys_user").on(t.userId)],
  );

  /** Sign-in providers that the operator defined (identity.md 3.5). */
  const customProviders = d.table(
    "custom_providers",
    {
      id: d.id(),
      name: d.text().notNull(),
      /** Its id on the wire and in identities; never changes. */
      slug: d.text().notNull(),
      icon: d.text().notNull().default(""),
      enabled: d.bool().notNull().default(false),
      /** oauth2 or oidc. */
      kind: d.text().notNull(),
      clientId: d.text().notNull().default(""),
      clientSecretSealed: d.text().notNull().default(""),
      issuer: d.text().notNull().default(""),
      authorizationEndpoint: d.text().notNull().default(""),
      tokenEndpoint: d.text().notNull().default(""),
      userInfoEndpoint: d.text().notNull().default(""),
      scopes: d.text().notNull().default(""),
      /** 0: found out, 1: in the body, 2: Basic. */
      authStyle: d.int().notNull().default(0),
      userIdField: d.text().notNull().default("sub"),
      usernameField: d.text().notNull().default("preferred_username"),
      displayNameField: d.text().notNull().default("name"),
      emailField: d.text().notNull().default("email"),
      emailVerifiedField: d.text().notNull().default("email_verified"),
      /** JSON text; empty: everybody. */
      accessPolicy: d.text().notNull().default(""),
      accessDeniedMessage: d.text().notNull().default(""),
      /** auto, on or off. */
      pkce: d.text().notNull().default("auto"),
      allowRegister: d.bool().notNull().default(true),
      skipSecondFactor: d.bool().notNull().default(false),
      /** Links a verified address to the account that has it; never to an administrator's. */
      linkVerifiedEmail: d.bool().notNull().default(false),
      createdAt: d.big().notNull(),
      updatedAt: d.big().notNull(),
    },
    (t) => [d.uniqueIndex("custom_providers_slug").on(t.slug)],
  );

  /** Letters that wait for the SMTP server. Codes and reset links never stand here. */
  const outbox = d.table(
    "outbox",
    {
      id: d.id(),
      userId: d.big().notNull().default(0),
      /** What it is about, for the log. */
      kind: d.text().notNull(),
      /** Receiver, subject and text, sealed. */
      letterSealed: d.text().notNull(),
      attempts: d.int().notNull().default(0),
      createdAt: d.big().notNull(),
      /** Unix seconds before which nobody sends it. */
      nextAt: d.big().notNull(),
      /** Given up: kept for a while for whoever looks why. */
      deadAt: d.big(),
    },
    (t) => [
      d
        .index("outbox_due")
        .on(t.nextAt)
        .where(sql`${t.deadAt} is null`),
      d.index("outbox_user").on(t.userId),
    ],
  );

  /** Something done to many accounts at once (core/users/bulk.ts): who asked, for what, and how far it is. */
  const userBulks = d.table(
    "user_bulks",
    {
      id: d.id(),
      /** group, credit, disable, enable, flag, letter or import. */
      action: d.text().notNull(),
      /** JSON text of what the action needs. */
      params: d.text().notNull(),
      reason: d.text().notNull().default(""),
      /** JSON text: who asked, from where (core/logs/audit.ts). */
      actor: d.text().notNull(),
      actorId: d.big().notNull(),
      total: d.big().notNull(),
      createdAt: d.big().notNull(),
      /** A node that works on it has it to itself so long, Unix seconds. */
      leaseUntil: d.big().notNull().default(0),
      finishedAt: d.big().notNull().default(0),
    },
    (t) => [
      d
        .index("user_bulks_open")
        .on(t.leaseUntil)
        .where(sql`${t.finishedAt} = 0`),
    ],
  );

  /** The accounts of such a run, frozen when it was asked for; each is done, or refused with a code, exactly once. */
  const userBulkItems = d.table(
    "user_bulk_items",
    {
      bulkId: d.big().notNull(),
      userId: d.big().notNull(),
      /** 0 waits, 1 done, 2 refused. */
      state: d.int().notNull().default(0),
      /** Why it was refused (shared/failure-codes.ts). */
      code: d.text().notNull().default(""),
      /** JSON text of the values in that sentence; "" where it has none. */
      params: d.text().notNull().default(""),
    },
    (t) => [
      d.primaryKey({ columns: [t.bulkId, t.userId] }),
      d.index("user_bulk_items_state").on(t.bulkId, t.state, t.userId),
    ],
  );

  /** The lines of a file of accounts that is being brought in, as a run of `user_bulks`; each is done exactly once. */
  const userImportRows = d.table(
    "user_import_rows",
    {
      id: d.id(),
      bulkId: d.big().notNull(),
      /** As spreadsheets number them. */
      line: d.int().notNull(),
      /** The account that changes; 0: one is made. */
      userId: d.big().notNull().default(0),
      username: d.text().notNull().default(""),
      /** JSON of the line, passwords included; emptied once it is done or refused. */
      rowSealed: d.text().notNull().default(""),
      /** 0 waits, 1 done, 2 refused. */
      state: d.int().notNull().default(0),
      code: d.text().notNull().default(""),
      params: d.text().notNull().default(""),
    },
    (t) => [
      d.uniqueIndex("user_import_rows_line").on(t.bulkId, t.line),
      d.index("user_import_rows_state").on(t.bulkId, t.state, t.line),
    ],
  );

  const tokens = d.table(
    "tokens",
    {
      id: d.id(),
      userId: d.big().notNull(),
      /** SHA-256 (hex) of the 48-character key. */
      keyHash: d.text().notNull(),
      keySealed: d.text().notNull(),
      /** Of a rotated key: the hash of the one before, and until when that is still taken; empty: none. */
      previousKeyHash: d.text(),
      previousUntil: d.big().notNull().default(0),
      /** First and last four characters, for search and masked display. */
      keyHead: d.text().notNull().default(""),
      keyTail: d.text().notNull().default(""),
      status: d.int().notNull().default(1),
      name: d.text().notNull().default(""),
      createdTime: d.big().notNull().default(0),
      accessedTime: d.big().notNull().default(0),
      expiredTime: d.big().notNull().default(-1),
      remainQuota: d.big().notNull().default(0),
      usedQuota: d.big().notNull().default(0),
      /** remainQuota + usedQuota as of the last edit: settlement never changes the sum, so audit can prove it. */
      quotaBase: d.big().notNull().default(0),
      unlimitedQuota: d.bool().notNull().default(false),
      modelLimitsEnabled: d.bool().notNull().default(false),
      modelLimits: d.text().notNull().default(""),
      allowIps: d.text().notNull().default(""),
      group: d.text().notNull().default(""),
      /** Of a key with the group `auto`: the groups that are tried in place of the site's, separated by commas. */
      autoGroups: d.text().notNull().default(""),
      /** Units that may be spent in a period of the site's calendar; this and the limits below: 0 = none. */
      budgetQuota: d.big().notNull().default(0),
      /** day, week or month. */
      budgetPeriod: d.text().notNull().default("month"),
      /** Requests, and tokens, in any 60 seconds. */
      rpmLimit: d.big().notNull().default(0),
      tpmLimit: d.big().notNull().default(0),
      /** Calls at once. */
      maxConcurrency: d.big().notNull().default(0),
      /** The most that one call may cost, in units; 0 = as much as it takes. */
      maxQuota: d.big().notNull().default(0),
      deletedAt: d.big(),
    },
    (t) => [
      d.uniqueIndex("tokens_key").on(t.keyHash),
      d.uniqueIndex("tokens_previous_key").on(t.previousKeyHash),
      d.index("tokens_user").on(t.userId),
      d.index("tokens_name").on(t.name),
    ],
  );

  const channels = d.table(
    "channels",
    {
      id: d.id(),
      type: d.int().notNull().default(1),
      openaiOrganization: d.text(),
      testModel: d.text(),
      status: d.int().notNull().default(1),
      name: d.text().notNull().default(""),
      weight: d.int().notNull().default(0),
      createdTime: d.big().notNull().default(0),
      testTime: d.big().notNull().default(0),
      /** Milliseconds of the last test; 0 = never tested. */
      responseTime: d.int().notNull().default(0),
      baseUrl: d.text().notNull().default(""),
      other: d.text().notNull().default(""),
      /** US dollars as the provider reports them. */
      balance: d.real().notNull().default(0),
      balanceUpdatedTime: d.big().notNull().default(0),
      models: d.text().notNull().default(""),
      group: d.text().notNull().default("default"),
      usedQuota: d.big().notNull().default(0),
      modelMapping: d.text().notNull().default(""),
      statusCodeMapping: d.text().notNull().default(""),
      priority: d.big().notNull().default(0),
      autoBan: d.int().notNull().default(1),
      /** JSON text {status_reason, status_time}. */
      otherInfo: d.text().notNull().default(""),
      tag: d.text(),
      setting: d.text().notNull().default(""),
      paramOverride: d.text().notNull().default(""),
      /** JSON text: headers by name ("" takes one out), and patterns of those of the client that pass. */
      headerOverride: d.text().notNull().default(""),
      /** JSON text: the gates of single request fields, above what `setting` says. */
      settings: d.text().notNull().default(""),
      /** JSON text: what looks at the upstream's list of models found (core/channels/drift.ts); no form writes it. */
      modelDrift: d.text().notNull().default(""),
      maxInputTokens: d.big().notNull().default(0),
      /** Which of its keys a call gets: polling, random or affinity. */
      multiKeyMode: d.text().notNull().default("polling"),
      /** Calls at once, and requests and tokens a minute, over all keys; 0 = as many as there are. */
      maxConcurrency: d.int().notNull().default(0),
      rpmLimit: d.int().notNull().default(0),
      tpmLimit: d.int().notNull().default(0),
      /** Of `used_quota` what keys used that are gone: the rest is the sum of its keys' use. */
      goneKeysQuota: d.big().notNull().default(0),
    },
    (t) => [d.index("channels_tag").on(t.tag), d.index("channels_priority").on(t.priority)],
  );

  /** The keys of channels, one row each; a channel asks with those of status 1. */
  const channelKeys = d.table(
    "channel_keys",
    {
      id: d.id(),
      channelId: d.big().notNull(),
      /** Place in the channel's list, from 0 without gaps. */
      pos: d.int().notNull(),
      keySealed: d.text().notNull().default(""),
      /** SHA-256 (hex) of the key. */
      keyHash: d.text().notNull(),
      label: d.text().notNull().default(""),
      /** 1 on, 2 switched off by hand, 3 switched off by itself. */
      status: d.int().notNull().default(1),
      /** Why it is off, in an upstream's scrubbed words or ours; "" where it is on. */
      reason: d.text().notNull().default(""),
      /** Unix seconds of the last change of status; 0 = never. */
      statusTime: d.big().notNull().default(0),
      /** As the channel's, for this key alone. */
      maxConcurrency: d.int().notNull().default(0),
      rpmLimit: d.int().notNull().default(0),
      tpmLimit: d.int().notNull().default(0),
      usedQuota: d.big().notNull().default(0),
      /** Unix seconds of the last settled call; 0 = never. */
      lastUsed: d.big().notNull().default(0),
      /** Probes in vain since it served a call last, and when the next is due (Unix seconds; 0 = none yet). */
      probes: d.int().notNull().default(0),
      nextProbe: d.big().notNull().default(0),
    },
    (t) => [d.uniqueIndex("channel_keys_hash").on(t.channelId, t.keyHash)],
  );

  /** Index of what each channel serves: one row per channel, group and model; rebuilt with the channel. */
  const abilities = d.table(
    "abilities",
    {
      group: d.text().notNull(),
      model: d.text().notNull(),
      channelId: d.big().notNull(),
      enabled: d.bool().notNull().default(true),
      priority: d.big().notNull().default(0),
      weight: d.int().notNull().default(0),
      tag: d.text(),
    },
    (t) => [
      d.primaryKey({ columns: [t.group, t.model, t.channelId] }),
      d.index("abilities_channel").on(t.channelId),
    ],
  );

  const options = d.table("options", {
    key: d.text().primaryKey(),
    /** Plain text, or sealed text for secret options. */
    value: d.text().notNull().default(""),
  });

  /** What signs sessions, where the operator gave nothing: one row, beside the options because no backup takes it along. */
  const sessionSecrets = d.table("session_secrets", {
    key: d.text().primaryKey(),
    valueSealed: d.text().notNull(),
  });

  const redemptions = d.table(
    "redemptions",
    {
      id: d.id(),
      userId: d.big().notNull(),
      keyHash: d.text().notNull(),
      keySealed: d.text().notNull(),
      status: d.int().notNull().default(1),
      name: d.text().notNull().default(""),
      quota: d.big().notNull().default(100),
      createdTime: d.big().notNull().default(0),
      redeemedTime: d.big().notNull().default(0),
      usedUserId: d.big().notNull().default(0),
      /** From this Unix second on nobody redeems it; 0: no end. */
      expiresAt: d.big().notNull().default(0),
      deletedAt: d.big(),
    },
    (t) => [d.uniqueIndex("redemptions_key").on(t.keyHash), d.index("redemptions_name").on(t.name)],
  );

  /** Narrow fixed columns first: a number behind long text would cost SQLite a walk over overflow pages. */
  const logs = d.table(
    "logs",
    {
      id: d.id(),
      createdAt: d.big().notNull(),
      type: d.int().notNull(),
      userId: d.big().notNull(),
      channelId: d.big().notNull().default(0),
      tokenId: d.big().notNull().default(0),
      quota: d.big().notNull().default(0),
      promptTokens: d.big().notNull().default(0),
      completionTokens: d.big().notNull().default(0),
      useTimeMs: d.big().notNull().default(0),
      isStream: d.bool().notNull().default(false),
      requestId: d.text().notNull().default(""),
      modelName: d.text().notNull().default(""),
      username: d.text().notNull().default(""),
      tokenName: d.text().notNull().default(""),
      group: d.text().notNull().default(""),
      content: d.text().notNull().default(""),
      other: d.text().notNull().default(""),
    },
    (t) => [
      d.index("logs_time").on(t.createdAt),
      d.index("logs_user_time").on(t.userId, t.createdAt),
      // Ids begin with the time, so that new ones are appended: refunds and searches find a call without a scan.
      d.index("logs_request").on(t.requestId),
      // Everything but calls: few rows, so that further indexes of theirs cost calls nothing.
      d
        .index("logs_rare_types")
        // What else a list narrows them by stands in it, so that they are counted without their rows.
        .on(t.type, t.createdAt, t.group, t.tokenId, t.modelName)
        .where(sql`${t.type} <> 2`),
      d
        .index("logs_rare_user")
        // As the query has it: SQLite would take the index of all the user's rows.
        // Which of them no channel was asked for stands in it.
        .on(sql`(${t.userId} + 0)`, t.type, t.createdAt, t.channelId)
        .where(sql`(${t.type} + 0) <> 2`),
      d
        .index("logs_rare_model")
        // So are those counted that no sum has under their model (core/logs/filter.ts).
        .on(t.modelName, t.type, t.createdAt, t.channelId)
        .where(sql`(${t.type} + 0) <> 2`),
      d
        .index("logs_rare_channel")
        .on(t.channelId, t.type, t.createdAt)
        .where(sql`(${t.type} + 0) <> 2`),
    ],
  );

  /** What sums of calls add up, in each of the tables below: a column that comes here is written to all of them. */
  const callSums = () => ({
    count: d.big().notNull().default(0),
    quota: d.big().notNull().default(0),
    promptTokens: d.big().notNull().default(0),
    completionTokens: d.big().notNull().default(0),
    useTimeMs: d.big().notNull().default(0),
    /** How much of count and quota also stands as log rows (log writing can be switched off). */
    loggedCount: d.big().notNull().default(0),
    loggedQuota: d.big().notNull().default(0),
    /** What upstreams are owed, in billionths of a dollar: of the calls whose cost is known, and of failed attempts. */
    costNanos: d.big().notNull().default(0),
    /** How much of count and quota is of calls whose cost is known; of the rest it is unknown, never 0. */
    costCount: d.big().notNull().default(0),
    costQuota: d.big().notNull().default(0),
    /** How much of costNanos earned nothing: failed attempts, and calls that cost their caller 0 in a group that pays. */
    lostNanos: d.big().notNull().default(0),
    /** Prompt tokens as caches of prompts know them, and how many of these came from one: their share is the hit rate. */
    cacheInput: d.big().notNull().default(0),
    cacheRead: d.big().notNull().default(0),
    /** What the same calls would have cost without a cache, less what they cost; below 0 where writing cost more. */
    cacheSaved: d.big().notNull().default(0),
    /** Failed calls that stand as rows of their own in the log; they are no part of count. */
    errorCount: d.big().notNull().default(0),
  });

  /** Hourly sums, written in the settle transaction and never cleared: every statistic and the audit read these. */
  const rollups = d.table(
    "rollups",
    {
      /** Unix seconds of the start of the hour. */
      hour: d.big().notNull(),
      userId: d.big().notNull(),
      modelName: d.text().notNull(),
      channelId: d.big().notNull(),
      tokenId: d.big().notNull(),
      group: d.text().notNull(),
      ...callSums(),
    },
    (t) => [
      d.primaryKey({ columns: [t.hour, t.userId, t.modelName, t.channelId, t.tokenId, t.group] }),
      d.index("rollups_user").on(t.userId, t.hour),
    ],
  );

  /**
   * The same sums, coarser, from the hour `rollup_days.from_hour` on, written with them (core/logs/coarse.ts): what is
   * shown of months would have to read millions of hourly ones.
   */
  const rollupsByModel = d.table(
    "rollups_by_model",
    { hour: d.big().notNull(), modelName: d.text().notNull(), ...callSums() },
    (t) => [d.primaryKey({ columns: [t.hour, t.modelName] })],
  );
  /** `day`: midnight of the day in the zone of `rollup_days`, in seconds of the local clock. */
  const rollupsByUser = d.table(
    "rollups_by_user",
    { day: d.big().notNull(), userId: d.big().notNull(), ...callSums() },
    (t) => [d.primaryKey({ columns: [t.day, t.userId] })],
  );
  /** Of one user hourly sums lie on as many pages as there are: months of them by model would be read one page each. */
  const rollupsByUserModel = d.table(
    "rollups_by_user_model",
    { day: d.big().notNull(), userId: d.big().notNull(), modelName: d.text().notNull(), ...callSums() },
    (t) => [d.primaryKey({ columns: [t.day, t.userId, t.modelName] })],
  );
  /** A key is one user's, but for 0, which stands for calls without one; so a user's keys are found here, deleted ones too. */
  const rollupsByToken = d.table(
    "rollups_by_token",
    { day: d.big().notNull(), tokenId: d.big().notNull(), userId: d.big().notNull(), ...callSums() },
    (t) => [
      d.primaryKey({ columns: [t.day, t.tokenId, t.userId] }),
      d.index("rollups_by_token_user").on(t.userId, t.day),
    ],
  );
  const rollupsByChannel = d.table(
    "rollups_by_channel",
    {
      day: d.big().notNull(),
      modelName: d.text().notNull(),
      channelId: d.big().notNull(),
      group: d.text().notNull(),
      ...callSums(),
    },
    (t) => [d.primaryKey({ columns: [t.day, t.modelName, t.channelId, t.group] })],
  );
  /** One row: whose days the coarse sums have, and from which hour on they are there. */
  const rollupDays = d.table("rollup_days", {
    id: d.big().primaryKey(),
    zone: d.text().notNull(),
    /** Unix seconds; 0 = all that there is. Settlements of earlier hours are left to core/logs/coarse-build.ts. */
    fromHour: d.big().notNull(),
  });

  /**
   * What models were to their users (core/site/model-days.ts): by day in UTC how many requests were answered and failed, and how
   * many first tokens came within each bound.
   */
  const modelDays = d.table(
    "model_days",
    {
      /** Unix seconds of the start of the day. */
      day: d.big().notNull(),
      modelName: d.text().notNull(),
      /** -2 answered, -1 failed, from 0 on the bounds of the first token. */
      slot: d.int().notNull(),
      count: d.big().notNull().default(0),
    },
    (t) => [d.primaryKey({ columns: [t.day, t.modelName, t.slot] })],
  );

  /** By hour and rule of affinity: calls, how many were served where they were bound or elsewhere, and what caches made of them. */
  const affinitySums = d.table(
    "affinity_sums",
    {
      /** Unix seconds of the start of the hour. */
      hour: d.big().notNull(),
      rule: d.text().notNull(),
      count: d.big().notNull().default(0),
      kept: d.big().notNull().default(0),
      switched: d.big().notNull().default(0),
      cacheInput: d.big().notNull().default(0),
      cacheRead: d.big().notNull().default(0),
      cacheSaved: d.big().notNull().default(0),
    },
    (t) => [d.primaryKey({ columns: [t.hour, t.rule] })],
  );

  /** What an upstream charges: the row with the latest `validFrom` that has come is in force; never visible to users. */
  const channelCosts = d.table(
    "channel_costs",
    {
      id: d.id(),
      channelId: d.big().notNull(),
      /** As the upstream knows it, or `*` for all without a row of their own. */
      model: d.text().notNull(),
      /** JSON of a price row in dollars (shared/price-row.ts); empty: the shipped table's, the list. */
      price: d.text().notNull().default(""),
      /** What the row or the list is multiplied by: a discount. */
      factor: d.real().notNull().default(1),
      /** The ratio of our group at an upstream that is another instance. */
      groupRatio: d.real().notNull().default(1),
      /** manual, list, pricing (of another instance) or bill (a drift that was accepted). */
      source: d.text().notNull().default("manual"),
      validFrom: d.big().notNull(),
      createdAt: d.big().notNull(),
      userId: d.big().notNull().default(0),
      username: d.text().notNull().default(""),
    },
    (t) => [d.uniqueIndex("channel_costs_from").on(t.channelId, t.model, t.validFrom)],
  );

  /** What providers say that they charged: each file or answer that was read, once. */
  const costImports = d.table(
    "cost_imports",
    {
      id: d.id(),
      channelId: d.big().notNull(),
      /** A format of core/costs/formats. */
      source: d.text().notNull(),
      /** SHA-256 of what was read. */
      hash: d.text().notNull(),
      createdAt: d.big().notNull(),
      userId: d.big().notNull().default(0),
      username: d.text().notNull().default(""),
      added: d.int().notNull().default(0),
      known: d.int().notNull().default(0),
      replaced: d.int().notNull().default(0),
      refused: d.int().notNull().default(0),
      /** First and last day that it is about, the start in UTC. */
      firstDay: d.big().notNull().default(0),
      lastDay: d.big().notNull().default(0),
    },
    (t) => [d.index("cost_imports_channel").on(t.channelId, t.id)],
  );

  /** The lines of such bills; a bucket that is read again with other content replaces its line. */
  const costBills = d.table(
    "cost_bills",
    {
      id: d.id(),
      importId: d.big().notNull(),
      channelId: d.big().notNull(),
      source: d.text().notNull(),
      /** What the line is about within its source: day, model and line item, or the id of a call. */
      bucket: d.text().notNull(),
      /** Of what it says of that. */
      hash: d.text().notNull(),
      /** Start of the day in UTC, Unix seconds. */
      day: d.big().notNull(),
      /** As the bill names it; empty: of no model. */
      model: d.text().notNull().default(""),
      /** The kind of token (shared/price-row.ts) that amount and tokens are of; empty: all, or none that we know. */
      kind: d.text().notNull().default(""),
      /** The upstream's id of the call. */
      requestId: d.text().notNull().default(""),
      /** Null: the line does not say. */
      requests: d.big(),
      tokens: d.big(),
      amountNanos: d.big(),
    },
    (t) => [
      d.uniqueIndex("cost_bills_bucket").on(t.channelId, t.source, t.bucket),
      d.index("cost_bills_day").on(t.channelId, t.day),
    ],
  );

  /** Every change of a balance that is not usage: quota = sum(credits) - usedQuota - open reservations. */
  const credits = d.table(
    "credits",
    {
      id: d.id(),
      userId: d.big().notNull(),
      amount: d.big().notNull(),
      /** setup, register, invite, redeem, payment, admin, affiliate, refund, import; plan, plan_end, plan_buy. */
      kind: d.text().notNull(),
      /** What caused it (redemption id, order number, task id); unique per kind where not empty. */
      ref: d.text().notNull().default(""),
      createdAt: d.big().notNull(),
    },
    (t) => [
      d.index("credits_user").on(t.userId),
      d
        .uniqueIndex("credits_once")
        .on(t.kind, t.ref)
        .where(sql`${t.ref} <> ''`),
    ],
  );

  /**
   * What imported accounts, keys and channels had used beyond what their imported sums say, signed: the counters of where they
   * come from and its log disagree, and neither is bent. Counter = opening + sums.
   */
  const openings = d.table(
    "openings",
    {
      /** user, token or channel. */
      kind: d.text().notNull(),
      id: d.big().notNull(),
      usedQuota: d.big().notNull().default(0),
      requestCount: d.big().notNull().default(0),
    },
    (t) => [d.primaryKey({ columns: [t.kind, t.id] })],
  );

  /** Durable reservations of nodes that share one PostgreSQL, for balances near zero; leased. */
  const reservations = d.table(
    "reservations",
    {
      requestId: d.text().primaryKey(),
      userId: d.big().notNull(),
      tokenId: d.big().notNull().default(0),
      amount: d.big().notNull(),
      nodeId: d.text().notNull(),
      expiresAt: d.big().notNull(),
    },
    (t) => [d.index("reservations_expiry").on(t.expiresAt)],
  );

  /**
   * What the other nodes cannot see of limited keys and users: open calls, what they hold, and the last minute, as each node
   * last told it (core/limits/shared-use.ts). PostgreSQL only.
   */
  const limitUses = d.table(
    "limit_uses",
    {
      nodeId: d.text().notNull(),
      /** user or token. */
      kind: d.text().notNull(),
      ownerId: d.big().notNull(),
      /** Units that open calls hold, and charges that are on their way to the tables. */
      held: d.big().notNull(),
      calls: d.big().notNull(),
      requests: d.big().notNull(),
      tokens: d.big().notNull(),
      /** Unix seconds of the database: a node that is silent so long counts no more. */
      expiresAt: d.big().notNull(),
    },
    (t) => [
      d.primaryKey({ columns: [t.kind, t.ownerId, t.nodeId] }),
      d.index("limit_uses_node").on(t.nodeId),
    ],
  );

  /** What somebody wants to pay for, whichever rail takes the money. Amount, currency and credit are frozen with the row. */
  const orders = d.table(
    "orders",
    {
      id: d.id(),
      tradeNo: d.text().notNull(),
      userId: d.big().notNull(),
      /** topup or plan. */
      kind: d.text().notNull().default("topup"),
      planId: d.big().notNull().default(0),
      rail: d.text().notNull(),
      /** What the payer chose within the rail: alipay, wxpay, card … */
      method: d.text().notNull().default(""),
      /** Units to be credited. */
      quota: d.big().notNull(),
      /** Whole minor units of the currency (cents, yen). */
      moneyMinor: d.big().notNull(),
      currency: d.text().notNull(),
      /** JSON text: amount as typed, its unit, and the figures that made the money. */
      snapshot: d.text().notNull().default("{}"),
      /** created, pending, credited, review, expired, failed, refunded. */
      status: d.text().notNull().default("created"),
      /** The rail's number of the payment; one payment pays one order. */
      providerRef: d.text(),
      /** The rail's number of the attempt, where it has one. */
      sessionId: d.text().notNull().default(""),
      /** What the rail reported as paid, in minor units of the order's currency; 0: nothing yet, or another currency. */
      paidMinor: d.big().notNull().default(0),
      refundedMinor: d.big().notNull().default(0),
      /** Held back by open or lost disputes. */
      disputedMinor: d.big().notNull().default(0),
      /** Units that were taken back. */
      debitedQuota: d.big().notNull().default(0),
      /** What an inviter was given for it, and who; 0 once it was taken back. */
      rewardQuota: d.big().notNull().default(0),
      rewardUserId: d.big().notNull().default(0),
      /** What was taken back of it, and how much of that from the balance: a refund that fails gives both again. */
      rewardBackQuota: d.big().notNull().default(0),
      rewardBackDebited: d.big().notNull().default(0),
      createdAt: d.big().notNull(),
      updatedAt: d.big().notNull(),
      expiresAt: d.big().notNull(),
      creditedAt: d.big().notNull().default(0),
      /** Who completed or refunded it by hand. */
      actorId: d.big().notNull().default(0),
      /** Why it is where it is. */
      note: d.text().notNull().default(""),
    },
    (t) => [
      d.uniqueIndex("orders_trade_no").on(t.tradeNo),
      d
        .uniqueIndex("orders_provider_ref")
        .on(t.rail, t.providerRef)
        .where(sql`${t.providerRef} is not null`),
      d.index("orders_user").on(t.userId, t.createdAt),
      d.index("orders_status").on(t.status, t.createdAt),
    ],
  );

  /** What is sold for a time: quota for each period, and a group. Rows stay when a plan is taken away. */
  const plans = d.table(
    "plans",
    {
      id: d.id(),
      title: d.text().notNull(),
      description: d.text().notNull().default(""),
      /** Whole minor units of the currency; 0: not sold for money. */
      priceMinor: d.big().notNull().default(0),
      currency: d.text().notNull().default(""),
      /** Units of the wallet; 0: not sold from the balance. */
      walletPrice: d.big().notNull().default(0),
      /** day, week, month, year; and how many of them. */
      durationUnit: d.text().notNull(),
      durationCount: d.int().notNull(),
      /** none, day, week, month: when the quota begins anew, counted from the start. */
      reset: d.text().notNull().default("none"),
      /** Units of each period. */
      quota: d.big().notNull(),
      /** Buyers are in it while the plan runs; empty: none. */
      group: d.text().notNull().default(""),
      /** Beyond the plan's quota the wallet pays. */
      overflow: d.bool().notNull().default(true),
      /** How often one account may buy it; 0: as often as it likes. */
      maxPerUser: d.int().notNull().default(0),
      /** extend: another one begins when the last ends. parallel: at once. */
      stack: d.text().notNull().default("extend"),
      enabled: d.bool().notNull().default(true),
      createdAt: d.big().notNull(),
      updatedAt: d.big().notNull(),
      deletedAt: d.big(),
    },
    (t) => [
      d
        .uniqueIndex("plans_title")
        .on(t.title)
        .where(sql`${t.deletedAt} is null`),
    ],
  );

  /** One bought plan of one account, at the terms of its purchase. */
  const userPlans = d.table(
    "user_plans",
    {
      id: d.id(),
      userId: d.big().notNull(),
      planId: d.big().notNull(),
      title: d.text().notNull(),
      durationUnit: d.text().notNull(),
      durationCount: d.int().notNull(),
      reset: d.text().notNull(),
      quota: d.big().notNull(),
      group: d.text().notNull().default(""),
      overflow: d.bool().notNull(),
      stack: d.text().notNull(),
      /** Months and days are those of this zone, whatever the site's becomes. */
      zone: d.text().notNull(),
      /** wallet, order, admin, import. */
      source: d.text().notNull(),
      /** Number of the order; empty: none. */
      tradeNo: d.text().notNull().default(""),
      /** Units that the wallet paid. */
      paidQuota: d.big().notNull().default(0),
      startsAt: d.big().notNull(),
      endsAt: d.big().notNull(),
      /** waiting, active, ended, cancelled, refunded. */
      status: d.text().notNull(),
      /** How many periods have begun. */
      periodNo: d.int().notNull().default(0),
      createdAt: d.big().notNull(),
      /** When it ended before its time; 0: it did not. */
      cancelledAt: d.big().notNull().default(0),
    },
    (t) => [
      d.index("user_plans_user").on(t.userId),
      d.index("user_plans_plan").on(t.planId),
      d
        .uniqueIndex("user_plans_order")
        .on(t.tradeNo)
        .where(sql`${t.tradeNo} <> ''`),
    ],
  );

  /** Periods of bought plans: what each gave and what of it was used. */
  const planPeriods = d.table(
    "plan_periods",
    {
      id: d.id(),
      userPlanId: d.big().notNull(),
      userId: d.big().notNull(),
      no: d.int().notNull(),
      startsAt: d.big().notNull(),
      endsAt: d.big().notNull(),
      quota: d.big().notNull(),
      used: d.big().notNull().default(0),
      /** 0: it runs. */
      closedAt: d.big().notNull().default(0),
    },
    (t) => [
      d.uniqueIndex("plan_periods_no").on(t.userPlanId, t.no),
      d
        .index("plan_periods_open")
        .on(t.userId)
        .where(sql`${t.closedAt} = 0`),
    ],
  );

  /** What rails told about payments, each event once, with what became of it. */
  const paymentEvents = d.table(
    "payment_events",
    {
      id: d.id(),
      rail: d.text().notNull(),
      /** The rail's number of the event, or a hash of what it said. */
      eventId: d.text().notNull(),
      tradeNo: d.text().notNull().default(""),
      at: d.big().notNull(),
      verdict: d.text().notNull(),
      /** JSON text without signatures, keys and the payer's person. */
      report: d.text().notNull().default("{}"),
    },
    (t) => [
      d.uniqueIndex("payment_events_once").on(t.rail, t.eventId, t.verdict),
      d.index("payment_events_order").on(t.tradeNo, t.at),
      d.index("payment_events_at").on(t.at),
    ],
  );

  /** Drawing tasks; their times are milliseconds. */
  const drawings = d.table(
    "midjourneys",
    {
      id: d.id(),
      code: d.int().notNull().default(0),
      userId: d.big().notNull(),
      tokenId: d.big().notNull().default(0),
      channelId: d.big().notNull().default(0),
      /** Of the channel's key that took it; 0 = not known. */
      keyId: d.big().notNull().default(0),
      action: d.text().notNull().default(""),
      mjId: d.text().notNull().default(""),
      group: d.text().notNull().default(""),
      modelName: d.text().notNull().default(""),
      submitTimeMs: d.big().notNull().default(0),
      startTimeMs: d.big().notNull().default(0),
      finishTimeMs: d.big().notNull().default(0),
      /** Of the call that submitted it: a refund takes back what this call was charged. */
      requestId: d.text().notNull().default(""),
      quota: d.big().notNull().default(0),
      /** Start of the hour whose sums have the charge, Unix seconds; 0 = not known (rows of earlier versions). */
      settledHour: d.big().notNull().default(0),
      refunded: d.bool().notNull().default(false),
      status: d.text().notNull().default(""),
      progress: d.text().notNull().default("0%"),
      prompt: d.text().notNull().default(""),
      promptEn: d.text().notNull().default(""),
      description: d.text().notNull().default(""),
      state: d.text().notNull().default(""),
      imageUrl: d.text().notNull().default(""),
      failReason: d.text().notNull().default(""),
      buttons: d.text().notNull().default(""),
      properties: d.text().notNull().default(""),
      /** The address came by a user's push, not from the upstream's own answer. */
      imagePushed: d.bool().notNull().default(false),
      /** Rounds of asking without news, and when to ask again (Unix milliseconds). */
      polls: d.int().notNull().default(0),
      nextPollMs: d.big().notNull().default(0),
    },
    (t) => [
      d.index("midjourneys_user").on(t.userId, t.submitTimeMs),
      d.index("midjourneys_mj_id").on(t.mjId),
      d
        .index("midjourneys_open")
        .on(t.progress)
        .where(sql`${t.progress} <> '100%'`),
    ],
  );

  /** Creative tasks (music and lyrics); their times are seconds. */
  const tasks = d.table(
    "tasks",
    {
      id: d.id(),
      createdAt: d.big().notNull().default(0),
      updatedAt: d.big().notNull().default(0),
      taskId: d.text().notNull().default(""),
      platform: d.text().notNull().default(""),
      userId: d.big().notNull(),
      tokenId: d.big().notNull().default(0),
      channelId: d.big().notNull().default(0),
      keyId: d.big().notNull().default(0),
      group: d.text().notNull().default(""),
      modelName: d.text().notNull().default(""),
      requestId: d.text().notNull().default(""),
      quota: d.big().notNull().default(0),
      /** As of drawings. */
      settledHour: d.big().notNull().default(0),
      refunded: d.bool().notNull().default(false),
      action: d.text().notNull().default(""),
      status: d.text().notNull().default(""),
      submitTime: d.big().notNull().default(0),
      startTime: d.big().notNull().default(0),
      finishTime: d.big().notNull().default(0),
      progress: d.text().notNull().default("0%"),
      failReason: d.text().notNull().default(""),
      properties: d.text().notNull().default(""),
      data: d.text().notNull().default(""),
      /** As of drawings. */
      polls: d.int().notNull().default(0),
      nextPollMs: d.big().notNull().default(0),
    },
    (t) => [
      d.index("tasks_user").on(t.userId, t.submitTime),
      d.index("tasks_task_id").on(t.taskId),
      d
        .index("tasks_open")
        .on(t.progress)
        .where(sql`${t.progress} <> '100%'`),
    ],
  );

  /**
   * What providers keep for a user under an id of theirs, and with whom: only that account can go on from it. Written
   * with the settlement of the call that made it (core/ledger), never changed.
   */
  const remoteObjects = d.table(
    "remote_objects",
    {
      userId: d.big().notNull(),
      /** "response": a stored answer of the Responses API. */
      kind: d.text().notNull(),
      upstreamId: d.text().notNull(),
      tokenId: d.big().notNull().default(0),
      channelId: d.big().notNull(),
      /** SHA-256 (hex) of the channel's key that made it; places in the list of keys change. */
      keyHash: d.text().notNull(),
      /** As requested. */
      modelName: d.text().notNull().default(""),
      /** All that it holds: a call that goes on from it has the provider read as much again. */
      tokenCount: d.big().notNull().default(0),
      createdAt: d.big().notNull(),
      expiresAt: d.big().notNull(),
      /** What the provider last said of it. */
      state: d.text().notNull().default("completed"),
    },
    (t) => [
      d.primaryKey({ columns: [t.userId, t.kind, t.upstreamId] }),
      d.index("remote_objects_expiry").on(t.expiresAt),
    ],
  );

  /**
   * Every change of a price, ratio or group as it was written: never changed, never deleted. The id counts from 1 without a
   * gap and is the value of the mark `price_revision`, whose row is the lock of all who write prices.
   */
  const priceRevisions = d.table(
    "price_revisions",
    {
      id: d.big().primaryKey(),
      /** write, reset, plans, apply, schedule, sync, cli, undo or import. */
      kind: d.text().notNull(),
      /** 0: the program itself. */
      userId: d.big().notNull().default(0),
      username: d.text().notNull().default(""),
      createdAt: d.big().notNull(),
      /** Why, in the words of whoever did it. */
      note: d.text().notNull().default(""),
      /** JSON text [{key, name, before, after}]; null = was, or is, not there. */
      changes: d.text().notNull(),
      changeCount: d.int().notNull(),
      /** As rows of the log name the tables that they were charged by. */
      fingerprint: d.text().notNull(),
      /** The revision that this one undoes, and the draft that it applies; 0 = none. */
      undoOf: d.big().notNull().default(0),
      draftId: d.big().notNull().default(0),
    },
    (t) => [d.index("price_revisions_undo").on(t.undoOf)],
  );

  /** Changes of prices that somebody prepares; state is open, scheduled, applied, failed or discarded. */
  const priceDrafts = d.table(
    "price_drafts",
    {
      id: d.id(),
      title: d.text().notNull().default(""),
      note: d.text().notNull().default(""),
      /** As of revisions; `before` is what stood there when the name came into the draft, or when it was scheduled. */
      changes: d.text().notNull().default("[]"),
      /** The revision that was in force when the changes were last looked up. */
      parent: d.big().notNull().default(0),
      state: d.text().notNull().default("open"),
      /** When a scheduled one is applied, Unix seconds; 0 = by hand. */
      effectiveAt: d.big().notNull().default(0),
      /** While it is scheduled, users read what it changes and when. */
      announce: d.bool().notNull().default(false),
      /** Raised by each change: two who edit at once notice. */
      version: d.int().notNull().default(1),
      /** The revision that applied it. */
      revisionId: d.big().notNull().default(0),
      /** Why it could not be applied. */
      failure: d.text().notNull().default(""),
      userId: d.big().notNull(),
      username: d.text().notNull(),
      /** Who scheduled it, and so applies it. */
      schedulerId: d.big().notNull().default(0),
      schedulerName: d.text().notNull().default(""),
      createdAt: d.big().notNull(),
      updatedAt: d.big().notNull(),
    },
    (t) => [d.index("price_drafts_due").on(t.state, t.effectiveAt)],
  );

  const setups = d.table("setups", {
    id: d.id(),
    version: d.text().notNull(),
    initializedAt: d.big().notNull(),
  });

  /**
   * Each node's journal, as far as the tables have it: mark = entered + set_aside + skipped, moved in the transaction of
   * every batch and by the process alone whose incarnation stands here.
   */
  const nodes = d.table("nodes", {
    nodeId: d.text().primaryKey(),
    /** Raised by every start: an older process of the same node is noticed at its next batch. */
    incarnation: d.big().notNull().default(0),
    /** Names the positions' history; stands in every frame, so that another journal's are told apart. */
    history: d.text().notNull(),
    /** Last position of the journal that the tables have. */
    mark: d.big().notNull().default(0),
    /** Last position that was durable in the journal when the mark was moved. */
    journaled: d.big().notNull().default(0),
    entered: d.big().notNull().default(0),
    setAside: d.big().notNull().default(0),
    skipped: d.big().notNull().default(0),
    /** On the database's clock; 0 when the node let go of it. */
    leaseUntil: d.big().notNull().default(0),
    /** Fingerprint of machine and data directory of the process that holds it. */
    place: d.text().notNull().default(""),
    /** JSON text of what the node told of itself last (core/site/node-figures.ts); only where several share the database. */
    figures: d.text().notNull().default(""),
    updatedAt: d.big().notNull().default(0),
  });

  /**
   * Single numbers that must survive: `version:<kind>` (raised by each announced change, db/changes.ts),
   * `database` (this database's own number), `hole:<node>:<first>-<last>` (positions of a journal that an operator
   * gave up), `node:<id>` (a sign of life, ledger/outage.ts), `low-quota:<user>` and `low-quota-armed:<user>`
   * (users/low-quota-marks.ts), `logs:clearedBefore`, `models-told` (channels/upstream-models.ts), `price_revision` (the latest one, prices/revisions.ts), `ways_in` (a lock, users/providers/methods.ts).
   */
  const marks = d.table("marks", {
    key: d.text().primaryKey(),
    value: d.big().notNull().default(0),
  });

  /**
   * Months of the log that agreed with the hourly sums (core/ledger/audit-months.ts): digests of both, and when the rows were
   * read; 0 = they have differed since.
   */
  const auditMonths = d.table("audit_months", {
    /** Unix seconds of the month's first moment in UTC. */
    month: d.big().primaryKey(),
    sums: d.big().notNull(),
    rows: d.big().notNull(),
    checkedAt: d.big().notNull(),
  });

  /** Months of the hourly sums that agreed with the coarse ones (core/ledger/audit-sums.ts), and when it was looked; 0 as above. */
  const auditSums = d.table("audit_sums", {
    /** The month's first day, as the coarse sums count days. */
    month: d.big().primaryKey(),
    /** Of its coarse sums. */
    digest: d.big().notNull(),
    checkedAt: d.big().notNull(),
  });

  /**
   * What needs a person (core/inbox): one row for each kind and subject, opened again where the cause comes back. Times are
   * Unix seconds; 0 = never.
   */
  const inboxItems = d.table(
    "inbox_items",
    {
      id: d.id(),
      /** A row of shared/inbox.ts. */
      kind: d.text().notNull(),
      /** What of the kind: a channel's id, a model's name, a node; empty where the site has only one. */
      subject: d.text().notNull().default(""),
      /** JSON text of what the sentence names. */
      params: d.text().notNull().default("{}"),
      openedAt: d.big().notNull(),
      lastSeenAt: d.big().notNull(),
      /** How often it was met; goes on where the cause comes back within a day. */
      count: d.big().notNull().default(1),
      /** The last letter of it. */
      toldAt: d.big().notNull().default(0),
      /** Since when a letter of it is due; 0 = none is. */
      owedAt: d.big().notNull().default(0),
      snoozedUntil: d.big().notNull().default(0),
      /** 0 = open. */
      closedAt: d.big().notNull().default(0),
      /** Who closed it by hand; 0 = it closed itself. */
      closedBy: d.big().notNull().default(0),
    },
    (t) => [
      d.uniqueIndex("inbox_items_cause").on(t.kind, t.subject),
      d.index("inbox_items_closed").on(t.closedAt),
    ],
  );

  return {
    users,
    identities,
    sessions,
    userDevices,
    authFlows,
    totps,
    backupCodes,
    passkeys,
    customProviders,
    outbox,
    userBulks,
    userBulkItems,
    userImportRows,
    priceOrigins,
    tokens,
    channels,
    channelKeys,
    abilities,
    options,
    sessionSecrets,
    redemptions,
    logs,
    rollups,
    rollupsByModel,
    rollupsByUser,
    rollupsByUserModel,
    rollupsByToken,
    rollupsByChannel,
    rollupDays,
    modelDays,
    affinitySums,
    channelCosts,
    costImports,
    costBills,
    credits,
    openings,
    reservations,
    limitUses,
    orders,
    plans,
    userPlans,
    planPeriods,
    paymentEvents,
    drawings,
    tasks,
    remoteObjects,
    priceRevisions,
    priceDrafts,
    setups,
    nodes,
    auditMonths,
    auditSums,
    marks,
    inboxItems,
  };
}

export type Schema = ReturnType<typeof buildSchema>;
