/** Milliseconds after its last call until an instance's reservations no longer count. */
const DEAD_AFTER_MS = 20_000
/** Milliseconds after its last call until an instance's allowances are released. */
const FORGOTTEN_AFTER_MS = 600_000

/** Milliseconds without new allowances after a request was refused because of allowances. */
const CLAIM_MS = 5_000

/** Separates the parts of a field name. No name contains this character. */
export const SEPARATOR = '\u001f'
/** Separates the scope from the end of the period in the name of an account. */
export const PERIOD_SEPARATOR = '\u001e'

/* `hash` below: index, from 1, of the hash in KEYS with the state of the limit, which belongs to the key or to one of its groups. */

/** A rate limit. `refund`: requests or tokens that settlements have returned since the last call. */
export type BucketArgument = readonly [id: string, perMinute: number, refund: number, hash: number]
/** A concurrency limit. `mine`: running requests of this instance. */
export type GaugeArgument = readonly [id: string, limit: number, mine: number, hash: number]
/**
 * A budget in one period, in nanodollars. `own`: spend since this instance's start; `keep`: the least allowance that the instance keeps;
 * `floor`: spend in PostgreSQL, -1 = not sent; `wanted`: 1 = the instance wants an allowance; `renewalMs`: ms until the end of the period,
 * -1 = no end; `restores`: 1 = an unknown account can start with `floor`.
 */
export type AccountArgument = readonly [
  id: string, limit: number, own: number, reserved: number, keep: number, floor: number, wanted: 0 | 1, renewalMs: number,
  restores: 0 | 1, hash: number,
]
/** A request: estimated tokens and cost (-1 = unpriced), number of requests for a lease, and indexes of its limits (from 1; 0 = none). */
export type AdmitArgument = readonly [
  tokens: number, nano: number, leaseRequests: number, scopes: readonly (readonly [request: number, token: number, gauge: number, account: number])[],
]

export interface ScriptArgument {
  readonly instance: string
  /** Sequence number of the call in this instance. */
  readonly call: number
  readonly buckets: readonly BucketArgument[]
  readonly gauges: readonly GaugeArgument[]
  readonly accounts: readonly AccountArgument[]
  readonly admits: readonly AdmitArgument[]
}

/** `code`: 0 = admitted; 1 to 5 = refused by requests, tokens, concurrency, budget, missing price; 6 = restore the budget's spend first. */
export type AdmitReply = readonly [code: number, scope: number, waitMs: number, leaseRequests: number]
/** `spent`: -1 = unknown, so that it must be restored first; `target`: the allowance that the instance should have. */
export type AccountReply = readonly [spent: number, allowance: number, target: number]
export type ScriptReply = readonly [
  admits: readonly AdmitReply[], levels: readonly number[], accounts: readonly AccountReply[], instances: number,
]

/**
 * Updates the limits of some keys and groups in one step. Each of KEYS is a hash with the state of one key or group. Its fields: levels of
 * rates (r, with their time q), spend of budgets (t), when a request was last refused because of other instances' allowances (w). Its
 * fields for each instance: running requests (c), reservations (b), spend since its start (o), allowances (a), number (n) and time (s) of
 * its last call.
 *
 * Each call sends all reservations of the instance, so that the next call corrects the state after a lost reply or an emptied server. Spend
 * is sent as a growing sum, of which the script adds the difference. A call that arrives after a later call changes nothing.
 *
 * While the server does not know a budget's spend, the script only records the reservations and the spend of each instance. When an
 * instance restores the budget, the script adds only the spend after those records.
 *
 * Rates work as in bucket.ts: levels are in 1/60,000, and drain by the server's clock.
 */
export const SCRIPT = `
local A = cjson.decode(ARGV[1])
local SEP, ME = '${SEPARATOR}', A.instance
local T = redis.call('TIME')
local now = tonumber(T[1]) * 1000 + math.floor(tonumber(T[2]) / 1000)
local hashes = {}
for h, key in ipairs(KEYS) do
  local H, dels, seen, instances, others = {}, {}, {}, 1, {}
  local raw = redis.call('HGETALL', key)
  for i = 1, #raw, 2 do H[raw[i]] = tonumber(raw[i + 1]) end
  if (H['n' .. SEP .. ME] or 0) >= A.call then return redis.error_reply('a later call was here before') end
  for field, at in pairs(H) do
    if string.sub(field, 1, 2) == 's' .. SEP then
      local who = string.sub(field, 3)
      if who ~= ME then
        seen[who] = at
        if now - at < ${DEAD_AFTER_MS} then instances = instances + 1 end
        if now - at > ${FORGOTTEN_AFTER_MS} then dels[#dels + 1] = field end
      end
    end
  end
  for field, value in pairs(H) do
    local kind, id = string.match(field, '^([tcboawn])' .. SEP .. '([^' .. SEP .. ']*)')
    local ends = id and tonumber(string.match(id, '${PERIOD_SEPARATOR}(%d+)$'))
    if ends and ends > 0 and ends < now - 172800000 then
      dels[#dels + 1] = field
    elseif kind and kind ~= 't' and kind ~= 'w' then
      local who = string.match(field, SEP .. '([^' .. SEP .. ']*)$')
      if who ~= ME then
        local age = seen[who] and now - seen[who] or ${FORGOTTEN_AFTER_MS + 1}
        if age > ${FORGOTTEN_AFTER_MS} or (age > ${DEAD_AFTER_MS} and (kind == 'c' or kind == 'b')) then
          dels[#dels + 1] = field
        elseif kind ~= 'o' then
          local name = kind .. SEP .. id
          others[name] = (others[name] or 0) + value
        end
      end
    end
  end
  hashes[h] = { state = H, sets = {}, dels = dels, others = others, instances = instances }
end
local function get(h, field) return hashes[h].state[field] end
local function ofOthers(h, field) return hashes[h].others[field] or 0 end
local function put(h, field, value)
  local sets = hashes[h].sets
  sets[#sets + 1] = field
  sets[#sets + 1] = string.format('%.0f', value)
end

-- kept: what is left of this instance's own allowance.
local levels, running, free, spent, kept = {}, {}, {}, {}, {}
for j, b in ipairs(A.buckets) do
  local level, at = get(b[4], 'r' .. SEP .. b[1]) or 0, get(b[4], 'q' .. SEP .. b[1]) or now
  levels[j] = math.max(0, level - math.max(0, now - at) * b[2] - b[3] * 60000)
end
for j, g in ipairs(A.gauges) do running[j] = g[3] + ofOthers(g[4], 'c' .. SEP .. g[1]) end
for j, a in ipairs(A.accounts) do
  local id, limit, own, reserved, floor, h = a[1], a[2], a[3], a[4], a[6], a[10]
  local total = get(h, 't' .. SEP .. id)
  local field = 'o' .. SEP .. id .. SEP .. ME
  local before = get(h, field)
  kept[j] = a[5]
  if floor >= 0 and (total or a[9] == 1) then total = math.max(total or 0, floor) end
  if total then
    if before and own > before then total = total + own - before end
    put(h, field, own)
    spent[j] = total
    free[j] = limit - total - reserved - ofOthers(h, 'b' .. SEP .. id) - ofOthers(h, 'a' .. SEP .. id) - a[5]
  else
    if not before then put(h, field, own) end
    spent[j], free[j] = -1, 0
  end
end

local function fill(over, perMinute, amount)
  if amount == 0 or over <= 0 then return 0 end
  if amount > perMinute then return math.huge end
  return math.ceil(over / perMinute)
end
local admits = {}
for i, r in ipairs(A.admits) do
  local tokens, nano, wanted = r[1], r[2], r[3]
  local code, scope, wait = 0, 0, 0
  local function blocked(which, s, ms) if ms > wait then code, scope, wait = which, s, ms end end
  local restore = false
  for s, at in ipairs(r[4]) do
    if at[1] > 0 then
      local b = A.buckets[at[1]]
      blocked(1, s, fill(levels[at[1]] + (1 - b[2]) * 60000, b[2], 1))
    end
    if at[2] > 0 then
      local b = A.buckets[at[2]]
      blocked(2, s, fill(levels[at[2]] + (tokens - b[2]) * 60000, b[2], tokens))
    end
    if at[3] > 0 then
      local g = A.gauges[at[3]]
      if running[at[3]] >= g[2] then blocked(3, s, g[2] == 0 and math.huge or 1000) end
    end
    if at[4] > 0 then
      local j = at[4]
      local a = A.accounts[j]
      local renewal = a[8] < 0 and math.huge or a[8]
      if spent[j] < 0 then restore = true
      elseif nano < 0 then blocked(5, s, math.huge)
      elseif nano > 0 and nano > free[j] + kept[j] then
        -- Only allowances are in the way: the others give theirs back at their next report.
        local claim = 'w' .. SEP .. a[1]
        if nano <= free[j] + kept[j] + ofOthers(a[10], 'a' .. SEP .. a[1]) then put(a[10], claim, now); hashes[a[10]].state[claim] = now end
        if nano > a[2] then blocked(4, s, math.huge)
        elseif spent[j] + nano <= a[2] then blocked(4, s, math.min(1000, renewal))
        else blocked(4, s, renewal) end
      end
    end
  end
  local lease = 0
  if restore then code = 6
  elseif code == 0 then
    local function take(n)
      for _, at in ipairs(r[4]) do
        if at[1] > 0 then levels[at[1]] = levels[at[1]] + n * 60000 end
        if at[2] > 0 then levels[at[2]] = levels[at[2]] + n * tokens * 60000 end
        if at[3] > 0 then running[at[3]] = running[at[3]] + n end
        local j = at[4]
        if j > 0 and nano > 0 then
          free[j] = free[j] - n * nano
          if free[j] < 0 then free[j], kept[j] = 0, math.max(0, kept[j] + free[j]) end
        end
      end
    end
    take(1)
    lease = wanted
    for _, at in ipairs(r[4]) do
      if at[1] > 0 then lease = math.min(lease, (A.buckets[at[1]][2] - levels[at[1]] / 60000) / 32) end
      if at[2] > 0 and tokens > 0 then lease = math.min(lease, (A.buckets[at[2]][2] - levels[at[2]] / 60000) / tokens / 32) end
      if at[3] > 0 then lease = math.min(lease, (A.gauges[at[3]][2] - running[at[3]]) / 8) end
      if at[4] > 0 and nano > 0 then lease = math.min(lease, free[at[4]] / nano / 32) end
    end
    lease = math.floor(lease)
    if lease < 4 then lease = 0 else take(lease) end
  end
  admits[i] = { code, scope, wait == math.huge and -1 or wait, lease }
end

local accounts = {}
for j, a in ipairs(A.accounts) do
  local id, h = a[1], a[10]
  local allowance, target, reserved = kept[j], kept[j], a[4]
  if spent[j] >= 0 then
    put(h, 't' .. SEP .. id, spent[j])
    local left = math.max(0, free[j])
    local claimed = get(h, 'w' .. SEP .. id)
    target = 0
    if a[7] == 1 and not (claimed and now - claimed < ${CLAIM_MS}) then
      target = math.floor((left + kept[j]) / 2 / hashes[h].instances)
    end
    allowance = kept[j] + math.min(math.max(0, target - kept[j]), left)
    -- What was admitted now is reserved too.
    reserved = a[2] - spent[j] - ofOthers(h, 'b' .. SEP .. id) - ofOthers(h, 'a' .. SEP .. id) - kept[j] - free[j]
  end
  put(h, 'b' .. SEP .. id .. SEP .. ME, reserved)
  put(h, 'a' .. SEP .. id .. SEP .. ME, allowance)
  accounts[j] = { spent[j], allowance, target }
end
for j, b in ipairs(A.buckets) do put(b[4], 'r' .. SEP .. b[1], levels[j]); put(b[4], 'q' .. SEP .. b[1], now) end
for j, g in ipairs(A.gauges) do put(g[4], 'c' .. SEP .. g[1] .. SEP .. ME, running[j] - ofOthers(g[4], 'c' .. SEP .. g[1])) end
local instances = 1
for h, key in ipairs(KEYS) do
  local hash = hashes[h]
  put(h, 's' .. SEP .. ME, now)
  put(h, 'n' .. SEP .. ME, A.call)
  if #hash.dels > 0 then redis.call('HDEL', key, unpack(hash.dels)) end
  redis.call('HSET', key, unpack(hash.sets))
  redis.call('PEXPIRE', key, 3456000000)
  instances = math.max(instances, hash.instances)
end
return { admits, levels, accounts, instances }
`
