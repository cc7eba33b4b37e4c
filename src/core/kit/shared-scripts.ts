// What processes share about limits, as scripts that run on the Valkey of the site: its clock counts, and nothing comes
// between a look and what is taken. A limited key, user or rate has one name there (`owner`):
//   owner:t, owner:s, owner:k   requests, successes, settled tokens: moments in their order, amounts beside them (…:n, sum in "s")
//   owner:o                     what each process has open ("calls held tokens"), what it has in advance under "B:process", and
//                               of each period of its budget, by its name "S:start:end", what is spent and when something was
//                               settled last ("units moment")
// A process tells whole figures, never differences: a word that was lost is made good by the next. Figures of a process that
// has said nothing for PROCESS_MS count no more; it is answered that it is new, and tells all it has open again. So is every process
// of a server that was emptied: the first one that comes tells the others on the channel of that name, and for UNSETTLED_MS answers
// say that others may not have told yet. Far from every edge a process is given calls in advance (shared-blocks.ts).
// Refuses moments of a coarser grain than 1/4096 of their window.
import { valkeyScript } from "../../db/valkey.ts";

/** The name of all processes, with the moment until which each counts. */
export const PROCESSES = "lim:processes";
/** A process that has ended without a word holds its places for so long. */
const PROCESS_MS = 10_000;
/** A site that nobody calls any more leaves nothing behind: all else that it keeps here has gone long before. */
const SITE_MS = 24 * 3_600_000;
/** All processes hear within some milliseconds that the server was emptied, and tell what they have open. */
export const UNSETTLED_MS = 1000;
/** What is given in advance is used within this time, or given back: it counts in the window as if it were used at its end. */
export const BLOCK_MS = 1000;
/** What is left of a limit is at least so many times what all processes could be given in advance. */
const FAR = 8;

/** What is answered of the process that asks: 0, it is known. */
export const NEWNESS = { known: 0, forgotten: 1, emptied: 2 } as const;

/** Why an owner refuses, as the script numbers it. */
export const SHARED_REFUSALS = ["requests", "success", "calls", "tokens", "budget"] as const;

const COMMON = `
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local self = ARGV[1]
local function text(number) return string.format("%.0f", number) end
-- Whoever forgot a process's open calls forgot its name with them.
local isNew = redis.call("HSET", KEYS[1], self, text(now + ${PROCESS_MS}))
if isNew == 1 then
  local since = redis.call("HGET", KEYS[1], "since")
  if not since then
    since = text(now)
    redis.call("HSET", KEYS[1], "since", since)
    redis.call("PUBLISH", KEYS[1], self)
  end
  if now - since < ${UNSETTLED_MS} then isNew = 2 end
  -- What is given in advance is shared among those that are there.
  local named = redis.call("HGETALL", KEYS[1])
  for place = 1, #named, 2 do
    if named[place] ~= "since" and tonumber(named[place + 1]) <= now then
      redis.call("HDEL", KEYS[1], named[place])
    end
  end
  redis.call("PEXPIRE", KEYS[1], ${SITE_MS})
end

local function grainOf(windowMs, limit)
  return limit <= 4096 and 1 or math.ceil(windowMs / 4096)
end
local function add(key, windowMs, limit, amount, at)
  local grain = grainOf(windowMs, limit)
  local moment = text((math.floor((at or now) / grain) + 1) * grain - 1)
  redis.call("ZADD", key, moment, moment)
  redis.call("HINCRBY", key .. ":n", moment, amount)
  redis.call("HINCRBY", key .. ":n", "s", amount)
  redis.call("PEXPIRE", key, windowMs + grain + ${BLOCK_MS + 1000})
  redis.call("PEXPIRE", key .. ":n", windowMs + grain + ${BLOCK_MS + 1000})
end
local function tellOpen(name, key, calls, held, tokens)
  if calls == 0 and held == 0 and tokens == 0 then redis.call("HDEL", key, name)
  else redis.call("HSET", key, name, text(calls) .. " " .. text(held) .. " " .. text(tokens)) end
  redis.call("PEXPIRE", key, 3600000)
end
`;

/** Numbers of an owner in a question, in their order; 0: no such limit. */
export interface AskedOwner {
  key: string;
  windowMs: number;
  maxRequests: number;
  maxSuccesses: number;
  maxTokens: number;
  maxCalls: number;
  budget: number;
  /** Open in this process without the call that asks. */
  calls: number;
  held: number;
  tokens: number;
  /** What the call has to find room for; more than it counts where it goes alone. */
  wantedTokens: number;
  /** Unix seconds of the budget's period, what this process knows as spent in it, and whether it has just read it. */
  period: number;
  periodEnd: number;
  spent: number;
  isFresh: boolean;
  /** So many calls more, like this one, are wanted in advance. */
  block: number;
}

/**
 * ARGV: the process; 1 begins a call, 0 is one that wants more units, 2 counts a request whatever the limits say; units,
 * fewest units, tokens; then 15 numbers an owner. Answers {0, units granted, moment} or {owner, refusal, milliseconds}, and after
 * them how known the process is: unless 0, what it has open has to be told again. A call that begins is answered how many calls more
 * each owner has in advance.
 */
export const ASK = valkeyScript(`${COMMON}
local mode, granted, least, tokens = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local function sumOf(key, windowMs)
  local gone = redis.call("ZRANGEBYSCORE", key, "-inf", text(now - windowMs))
  if #gone > 0 then
    local left = 0
    for _, moment in ipairs(gone) do
      left = left + (tonumber(redis.call("HGET", key .. ":n", moment) or 0))
      redis.call("HDEL", key .. ":n", moment)
    end
    redis.call("ZREMRANGEBYSCORE", key, "-inf", text(now - windowMs))
    redis.call("HINCRBY", key .. ":n", "s", -left)
  end
  return math.max(0, tonumber(redis.call("HGET", key .. ":n", "s") or 0))
end
local function waitOf(key, windowMs, sum, most)
  local at = 0
  while sum > most do
    local some = redis.call("ZRANGE", key, at, at + 99)
    if #some == 0 then return windowMs end
    for _, moment in ipairs(some) do
      sum = sum - (tonumber(redis.call("HGET", key .. ":n", moment) or 0))
      if sum <= most then return math.min(windowMs, tonumber(moment) + windowMs - now) end
    end
    at = at + 100
  end
  return 0
end
local alive = {}
local function isAlive(process)
  if alive[process] == nil then
    alive[process] = tonumber(redis.call("HGET", KEYS[1], process) or 0) > now
    if not alive[process] then redis.call("HDEL", KEYS[1], process) end
  end
  return alive[process]
end

local shared
local function apart()
  shared = shared or (redis.call("HLEN", KEYS[1]) - 1) * ${FAR}
  return shared
end
local owners = {}
-- Whatever else refuses it, it was a request under the rate of the site, which stands first.
local function refusedBy(at, why, waitMs)
  for before = 2, at - 1 do
    local own = owners[before]
    if own[2] > 0 and own[3] > 0 and mode == 1 then add(KEYS[before] .. ":t", own[1], own[2], 1) end
  end
  return {at - 1, why, waitMs, isNew}
end
for at = 2, #KEYS do
  local own = {}
  for place = 1, 15 do own[place] = tonumber(ARGV[5 + (at - 2) * 15 + place]) end
  local windowMs, maxRequests, maxSuccesses, maxTokens, maxCalls, budget = unpack(own, 1, 6)
  local key = KEYS[at]
  local isOpenTold = maxSuccesses + maxTokens + maxCalls + budget > 0
  local calls, held, open = 0, 0, 0
  local spent, settledAt
  local room = own[15]
  local function fit(left, each) if each > 0 then room = math.min(room, left / each / apart()) end end
  local period = "S:" .. text(own[11]) .. ":" .. text(own[12])
  if isOpenTold then
    local found = redis.call("HGETALL", key .. ":o")
    for place = 1, #found, 2 do
      local name, value = found[place], found[place + 1]
      local ends = string.match(name, "^S:%d+:(%d+)$")
      if name == period then
        local s, t = string.match(value, "^(%S+) (%S+)$")
        spent, settledAt = tonumber(s), tonumber(t)
      elseif ends then
        if tonumber(ends) * 1000 <= now then redis.call("HDEL", key .. ":o", name) end
      elseif name ~= self then
        local ofBlock = string.match(name, "^B:(.+)$")
        if ofBlock == self or isAlive(ofBlock or name) then
          local c, h, t = string.match(value, "^(%S+) (%S+) (%S+)$")
          calls, held, open = calls + tonumber(c), held + tonumber(h), open + tonumber(t)
        else redis.call("HDEL", key .. ":o", name) end
      end
    end
  end
  if mode == 1 then
    if maxRequests > 0 then
      local sum = sumOf(key .. ":t", windowMs)
      if sum >= maxRequests then
        return refusedBy(at, 1, waitOf(key .. ":t", windowMs, sum, maxRequests - 1))
      end
      if room > 0 then fit(maxRequests - sum, 1) end
    end
    if maxSuccesses > 0 then
      local sum = sumOf(key .. ":s", windowMs)
      if sum + calls + own[7] >= maxSuccesses then
        return refusedBy(at, 2, sum >= maxSuccesses and waitOf(key .. ":s", windowMs, sum, maxSuccesses - 1) or 0)
      end
      if room > 0 then fit(maxSuccesses - sum - calls - own[7], 1) end
    end
    if maxCalls > 0 and calls + own[7] >= maxCalls then return refusedBy(at, 3, 0) end
    if maxCalls > 0 and room > 0 then fit(maxCalls - calls - own[7], 1) end
    if maxTokens > 0 then
      local sum = sumOf(key .. ":k", windowMs)
      local beside = open + own[9]
      if sum + beside + own[10] > maxTokens then
        return refusedBy(at, 4, waitOf(key .. ":k", windowMs, sum, maxTokens - beside - own[10]))
      end
      if room > 0 then fit(maxTokens - sum - beside, math.max(tokens, own[10])) end
    end
  end
  if budget > 0 and mode < 2 then
    local isKept = spent and not (own[14] == 1 and now - settledAt > ${PROCESS_MS})
    spent = isKept and math.max(spent, own[13]) or own[13]
    local free = budget - spent - held - own[8]
    if free <= 0 or free < least then return refusedBy(at, 5, 0) end
    granted = math.min(granted, free)
    if room > 0 then fit(free, granted) end
    own.period, own.spent = period, text(spent) .. " " .. text(settledAt or 0)
  end
  own.isOpenTold = isOpenTold
  own.block = room >= 2 and math.floor(room) or 0
  owners[at] = own
end

local begun = mode == 1 and 1 or 0
local answer = {0, granted, now, isNew}
for at = 2, #KEYS do
  local own, key = owners[at], KEYS[at]
  local block = mode == 1 and own.block or 0
  if mode > 0 and own[2] > 0 then add(key .. ":t", own[1], own[2], 1) end
  if block > 0 and own[2] > 0 then add(key .. ":t", own[1], own[2], block, now + ${BLOCK_MS}) end
  if own.isOpenTold and mode < 2 then
    tellOpen(self, key .. ":o", own[7] + begun, own[8] + granted, own[9] + tokens)
    if block > 0 then tellOpen("B:" .. self, key .. ":o", block, granted * block, tokens * block) end
    if own.period then redis.call("HSET", key .. ":o", own.period, own.spent) end
  end
  if mode == 1 then answer[#answer + 1] = block end
end
return answer
`);

/** Numbers of an owner in a word, in their order. */
export interface ToldOwner {
  key: string;
  windowMs: number;
  /** 1: a request was answered, under this limit of successes. */
  successes: number;
  maxSuccesses: number;
  /** Settled by now: tokens, fewer than none where more were told before, and units, which count in every period of now. */
  tokensUsed: number;
  units: number;
  /** Open in this process by now. */
  calls: number;
  held: number;
  tokens: number;
  /** So many requests of this moment, under this limit, were none. */
  undoneMoment: number;
  undone: number;
  maxRequests: number;
  /** What it had in advance is given back. */
  isBlockOver: boolean;
}

/** ARGV: the process, which says no more: what it had open counts no longer, and others have its share. */
export const LEAVE = valkeyScript(`return redis.call("HDEL", KEYS[1], ARGV[1])`);

/** Of whoever has nothing of the kind. */
export const NO_ASKED = {
  maxRequests: 0,
  maxSuccesses: 0,
  maxTokens: 0,
  maxCalls: 0,
  budget: 0,
  calls: 0,
  held: 0,
  tokens: 0,
  wantedTokens: 0,
  period: 0,
  periodEnd: 0,
  spent: 0,
  isFresh: false,
  block: 0,
} as const;

export const NO_TOLD = {
  successes: 0,
  maxSuccesses: 0,
  tokensUsed: 0,
  units: 0,
  calls: 0,
  held: 0,
  tokens: 0,
  undoneMoment: 0,
  undone: 0,
  maxRequests: 0,
  isBlockOver: false,
} as const;

/** ARGV: the process; then 12 numbers an owner. Answers how known the process is. */
export const TELL = valkeyScript(`${COMMON}
redis.call("PEXPIRE", KEYS[1], ${SITE_MS})
for at = 2, #KEYS do
  local key, own = KEYS[at], {}
  for place = 1, 12 do own[place] = tonumber(ARGV[1 + (at - 2) * 12 + place]) end
  local windowMs, successes, maxSuccesses, tokensUsed, units, calls, held, tokens = unpack(own, 1, 8)
  local undoneMoment, undone, maxRequests, isBlockOver = unpack(own, 9, 12)
  if successes > 0 then add(key .. ":s", windowMs, maxSuccesses, successes) end
  if tokensUsed ~= 0 then add(key .. ":k", windowMs, 4097, tokensUsed) end
  if undone > 0 then
    local grain = grainOf(windowMs, maxRequests)
    local moment = text((math.floor(undoneMoment / grain) + 1) * grain - 1)
    if redis.call("HEXISTS", key .. ":t:n", moment) == 0 then
      -- It was counted with what another moment gave in advance. The oldest one lets nobody in too early.
      local isInWindow = undoneMoment - ${BLOCK_MS} > now - windowMs
      moment = isInWindow and redis.call("ZRANGE", key .. ":t", 0, 0)[1]
    end
    if moment then
      redis.call("HINCRBY", key .. ":t:n", moment, -undone)
      redis.call("HINCRBY", key .. ":t:n", "s", -undone)
    end
  end
  tellOpen(self, key .. ":o", calls, held, tokens)
  if isBlockOver == 1 then redis.call("HDEL", key .. ":o", "B:" .. self) end
  -- Processes may cut the budget's periods differently for a moment: what is settled now is spent in each of them.
  for _, name in ipairs(units > 0 and redis.call("HKEYS", key .. ":o") or {}) do
    local ends = string.match(name, "^S:%d+:(%d+)$")
    if ends and tonumber(ends) * 1000 > now then
      local spent = string.match(redis.call("HGET", key .. ":o", name), "^(%S+)")
      redis.call("HSET", key .. ":o", name, text(tonumber(spent) + units) .. " " .. text(now))
    end
  end
end
return isNew
`);
