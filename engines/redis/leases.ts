import { createHash } from 'node:crypto'
import { type Lease, type LeaseStore, WAITING_MS } from '../../src/state/locks/memory-leases.js'
import { CHANNEL, STORE } from '../../src/state/signals.js'

/** The part of a Redis client that is used here: runs a script. */
type RunScript = (script: string, keys: string[], args: string[]) => Promise<unknown>

/**
 * One hash per scope holds its leases: field = first letter of the kind and the name, value = '<ms since
 * 1970>:<token>'. Redis runs a script atomically (https://redis.io/docs/latest/develop/programmability/eval-intro/), so
 * checking for conflicts and taking the lease are one step. KEYS: the hash, the first in line for the name, the first
 * in line for a prefix of the scope. The latter two are '<microseconds since 1970>:<token>:<prefix>'. ARGV begins with
 * kind, name and token.
 */
const PRELUDE = `
local kind, name, token = ARGV[1], ARGV[2], ARGV[3]
local field = kind .. name
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local clock = string.format('%.0f', micros)
local function begins(text, with) return string.sub(text, 1, #with) == with end
local function held()
  local value = redis.call('HGET', KEYS[1], field)
  return value and string.sub(value, string.find(value, ':', 1, true) + 1) == token
end
local function put(ms)
  redis.call('HSET', KEYS[1], field, string.format('%.0f', now + ms) .. ':' .. token)
  if redis.call('PTTL', KEYS[1]) < ms then redis.call('PEXPIRE', KEYS[1], ms) end
end
local function first(key)
  local value = redis.call('GET', key)
  if not value then return nil end
  local since, who, prefix = string.match(value, '^(%d+):([^:]*):(.*)$')
  return tonumber(since), who, prefix
end
local function ahead(before)
  if kind == 'n' then
    local since, who = first(KEYS[2])
    if since and who ~= token and since <= before then return who end
  end
  local since, who, prefix = first(KEYS[3])
  if not since or who == token or since > before then return nil end
  if begins(name, prefix) or (kind == 'p' and begins(prefix, name)) then return who end
  return nil
end
local function free()
  redis.call('HDEL', KEYS[1], field)
  local who = ahead(micros)
  -- A user of Redis without the right to the channel releases all the same.
  if who then redis.pcall('PUBLISH', '${CHANNEL}', '${STORE} lease ' .. who) end
end
local function leave()
  local key = kind == 'n' and KEYS[2] or KEYS[3]
  local _, who = first(key)
  if who == token then redis.call('DEL', key) end
end
`

const ACQUIRE = `${PRELUDE}
local ms, since = tonumber(ARGV[4]), micros - tonumber(ARGV[5]) * 1000
local busy = false
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local k, n = string.sub(all[i], 1, 1), string.sub(all[i], 2)
  if tonumber(string.match(all[i + 1], '^%d+')) <= now then redis.call('HDEL', KEYS[1], all[i])
  elseif n == name or (k == 'p' and begins(name, n)) or (kind == 'p' and begins(n, name)) then busy = true
  end
end
if busy or ahead(since) then
  local key = kind == 'n' and KEYS[2] or KEYS[3]
  local earliest, who = first(key)
  if not earliest or who == token or since < earliest then
    redis.call('SET', key, string.format('%.0f', since) .. ':' .. token .. ':' .. (kind == 'p' and name or ''), 'PX', ${WAITING_MS})
  end
  return false
end
put(ms)
leave()
return clock`

const RENEW = `${PRELUDE}
if not held() then return false end
put(tonumber(ARGV[4]))
return clock`

const YIELD = `${PRELUDE}
if not held() then return false end
if ahead(micros) then
  free()
  return false
end
put(tonumber(ARGV[4]))
return clock`

const RELEASE = `${PRELUDE}
leave()
if held() then free() end
return 0`

export class RedisLeases implements LeaseStore {
  readonly #run: RunScript

  constructor(run: RunScript) {
    this.#run = run
  }

  async acquire(lease: Lease, ms: number, waitedMs = 0): Promise<number | undefined> {
    return timeOf(await this.#call(ACQUIRE, lease, ms, waitedMs))
  }

  async renew(lease: Lease, ms: number): Promise<number | undefined> {
    return timeOf(await this.#call(RENEW, lease, ms))
  }

  async yield(lease: Lease, ms: number): Promise<number | undefined> {
    return timeOf(await this.#call(YIELD, lease, ms))
  }

  async release(lease: Lease): Promise<void> {
    await this.#call(RELEASE, lease)
  }

  #call(script: string, { scope, kind, name, token }: Lease, ...numbers: number[]): Promise<unknown> {
    const lock = `dealgate-lock:${digest(scope)}`
    // Keys of one script must have one hash slot:
    // https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
    const wait = `dealgate-wait:{${lock}}`
    const args = [kind === 'prefix' ? 'p' : 'n', name, token, ...numbers.map((number) => String(Math.ceil(number)))]
    return this.#run(script, [lock, `${wait}:${digest(name)}`, wait], args)
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/**
 * Lua's `false` arrives as null. The number is sent as text, because Redis truncates Lua numbers to 64-bit integers,
 * which clients parse differently.
 */
function timeOf(answer: unknown): number | undefined {
  return answer === null ? undefined : Number(answer)
}
