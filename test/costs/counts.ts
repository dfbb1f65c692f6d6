import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { Endpoint } from '../suites/sign.js'
import { temporaryFolder } from '../support/content/folders.js'
import type { Counted } from '../support/server/counted.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { send, targetOf } from '../support/sign/send.js'

const RECORDED = 'test/costs/recorded.json'
/** Growth over a recorded count that fails. */
const TOLERATED = 1.1
const BODY = Buffer.alloc(1024, 'body')

export const BUCKET = 'counted'

interface CountedServer {
  readonly server: Dealgate
  /** What each thread of each process has counted. */
  counts(): Promise<readonly Counted[]>
}

/** A server whose threads count, with a bucket. */
export async function startCounted(t: Test, args: readonly string[] = []): Promise<CountedServer> {
  const folder = temporaryFolder(t)
  const preload = import.meta.resolve('../support/server/counted.js')
  const env = { NODE_OPTIONS: `--import=${preload}`, COUNTS_OF_TEST: folder }
  const server = await startDealgate(t, { args: ['--access-log', 'off', ...args], env })
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const ask = async (name: string) => JSON.parse(await text(connect(join(folder, name)))) as Counted
  return { server, counts: () => Promise.all(readdirSync(folder).map(ask)) }
}

/** Requests for objects of 1 KiB, one after the other over one connection. */
export async function requestMany(
  t: Test,
  server: Endpoint,
  method: 'GET' | 'HEAD' | 'PUT' | 'DELETE',
  count: number,
): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const expected = method === 'DELETE' ? 204 : 200
  try {
    for (let n = 0; n < count; n++) {
      const target = targetOf(BUCKET, `object-${n % 50}`)
      const answer = await send(server, { method, target, ...(method === 'PUT' && { body: BODY }) }, agent)
      if (answer.status !== expected) t.fail(`${method} is answered with ${answer.status}: ${answer.body}`)
    }
  } finally {
    agent.destroy()
  }
}

/**
 * Compares counts with those of recorded.json, of which none may have grown by more than a tenth. With UPDATE_COSTS=1
 * they are recorded instead.
 * @param name of the table
 * @param noise what a row may grow by in any case
 */
export function compareWithRecorded(t: Test, name: string, counts: Readonly<Record<string, number>>, noise = 0): void {
  const all = JSON.parse(readFileSync(RECORDED, 'utf8')) as Record<string, Record<string, number>>
  if (process.env.UPDATE_COSTS === '1') {
    const sorted = Object.entries({ ...all, [name]: counts }).sort(([one], [other]) => (one < other ? -1 : 1))
    writeFileSync(RECORDED, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`)
    return
  }
  const recorded = all[name]
  if (!recorded) {
    t.test(`${name}: not recorded, ${REMEDY}`, { skip: true }, async () => {})
    return
  }
  t.same(Object.keys(counts).sort(), Object.keys(recorded).sort(), `the rows of "${name}": ${REMEDY}`)
  for (const [row, count] of Object.entries(counts)) {
    const before = recorded[row] ?? 0
    t.ok(
      count <= before * TOLERATED + noise,
      `${name}, ${row}: ${count} for each request; recorded are ${before}. If that is what the change is worth: ${REMEDY}`,
    )
  }
}

const REMEDY = 'test/README.md says how to record it anew'
