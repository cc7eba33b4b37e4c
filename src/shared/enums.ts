// The numeric codes that stand in the database and on the wire, and nothing else.

export const Role = { guest: 0, user: 1, admin: 10, root: 100 } as const;

export const UserStatus = { enabled: 1, disabled: 2 } as const;
export const TokenStatus = { enabled: 1, disabled: 2, expired: 3, exhausted: 4 } as const;
export const RedemptionStatus = { unused: 1, disabled: 2, used: 3 } as const;
/** Of one key of a channel: off by hand, or by itself. */
export const KeyStatus = { on: 1, off: 2, autoOff: 3 } as const;
/** Which of a channel's keys a call gets; the first is the default. */
export const KEY_MODES = ["polling", "random", "affinity"] as const;
export type KeyMode = (typeof KEY_MODES)[number];
export const ChannelStatus = { unknown: 0, enabled: 1, disabled: 2, autoDisabled: 3 } as const;
export const LogType = {
  unknown: 0,
  topUp: 1,
  consume: 2,
  manage: 3,
  system: 4,
  error: 5,
  login: 7,
} as const;

/** Languages of the console and of failure texts; Chinese is the fallback. */
export type Language = "zh" | "en";
export const LANGUAGES: readonly Language[] = ["zh", "en"];
