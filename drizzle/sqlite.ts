// The schema as SQLite tables; drizzle-kit reads this file to generate drizzle/migrations/sqlite.
import { sqliteDialect } from "./dialect.ts";
import { buildSchema } from "./schema.ts";

export const schema = buildSchema(sqliteDialect);
export const {
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
  priceOrigins,
  tokens,
  channels,
  abilities,
  options,
  redemptions,
  logs,
  rollups,
  credits,
  reservations,
  orders,
  paymentEvents,
  drawings,
  tasks,
  remoteObjects,
  priceRevisions,
  priceDrafts,
  setups,
  nodes,
  inboxItems,
  marks,
} = schema;
