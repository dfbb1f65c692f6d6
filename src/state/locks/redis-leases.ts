import { createHash } from 'node:crypto'
import type { Lease, LeaseStore } from './lease-locks.js'

/** The part of a Redis client that is used here: runs a script on one key. */
export type RunScript = (script: string, key: string, args: string[]) => Promise<unknown>

/**
 * One hash per scope holds its leases: field = first letter of the kind and the name, value = '<ms since
 * 1970>:<token>'. Redis runs a script atomically (https://redis.io/docs/latest/develop/programmability/eval-intro/), so
 * checking for conflicts and taking the lease are one step.
 */
const PRELUDE = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local clock = string.format('%.0f', tonumber(time[1]) * 1000000 + tonumber(time[2]))
local function begins(text, with) return string.sub(text, 1, #with) == with end
local function is(value, token) return value and string.sub(value, string.find(value, ':', 1, true) + 1) == token end
local function put(field, token, ms)
  redis.call('HSET', KEYS[1], field, string.format('%.0f', now + ms) .. ':' .. token)
  if redis.call('PTTL', KEYS[1]) < ms then redis.call('PEXPIRE', KEYS[1], ms) end
end
`

const ACQUIRE = `${PRELUDE}
local kind, name, token, ms = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local k, n = string.sub(all[i], 1, 1), string.sub(all[i], 2)
  if tonumber(string.match(all[i + 1], '^%d+')) <= now then redis.call('HDEL', KEYS[1], all[i])
  elseif n == name or (k == 'p' and begins(name, n)) or (kind == 'p' and begins(n, name)) then return false
  end
end
put(kind .. name, token, ms)
return clock`

const RENEW = `${PRELUDE}
local field = ARGV[1] .. ARGV[2]
if not is(redis.call('HGET', KEYS[1], field), ARGV[3]) then return false end
put(field, ARGV[3], tonumber(ARGV[4]))
return clock`

const RELEASE = `${PRELUDE}
local field = ARGV[1] .. ARGV[2]
if is(redis.call('HGET', KEYS[1], field), ARGV[3]) then return redis.call('HDEL', KEYS[1], field) end
return 0`

export class RedisLeases implements LeaseStore {
  readonly #run: RunScript

  constructor(run: RunScript) {
    this.#run = run
  }

  async acquire(lease: Lease, ms: number): Promise<number | undefined> {
    return timeOf(await this.#run(ACQUIRE, keyOf(lease), [...argumentsOf(lease), String(Math.ceil(ms))]))
  }

  async renew(lease: Lease, ms: number): Promise<number | undefined> {
    return timeOf(await this.#run(RENEW, keyOf(lease), [...argumentsOf(lease), String(Math.ceil(ms))]))
  }

  async release(lease: Lease): Promise<void> {
    await this.#run(RELEASE, keyOf(lease), argumentsOf(lease))
  }
}

function keyOf(lease: Lease): string {
  return `dealgate-lock:${createHash('sha256').update(lease.scope).digest('base64url')}`
}

function argumentsOf(lease: Lease): string[] {
  return [lease.kind === 'prefix' ? 'p' : 'n', lease.name, lease.token]
}

/**
 * Lua's `false` arrives as null. The number is sent as text, because Redis truncates Lua numbers to 64-bit integers,
 * which clients parse differently.
 */
function timeOf(answer: unknown): number | undefined {
  return answer === null ? undefined : Number(answer)
}
