import http from 'node:http'
import { loadavg } from 'node:os'
import { send } from '../../test/support/sign/send.js'
import { inTurn } from './large.js'
import { type Cost, measure, median } from './measure.js'
import { CONNECTIONS, fire, hammer, keys, plain, type Shot } from './small.js'
import type { Endpoint, Target } from './target.js'

/** Short, so that all ways of one round meet the same load of the machine. */
const SECONDS = 1

/** By bucket: what the authorizer reads before it decides. All objects are private, and the owner asks. */
const BUCKETS: Readonly<Record<string, string>> = {
  bench: 'no policy',
  'bench-policy': 'a policy',
  'bench-acls': 'ACLs',
}

/** Of one kind of request by one way. */
interface Way {
  readonly name: string
  readonly to: Endpoint
  readonly shots: () => Promise<readonly Shot[]> | readonly Shot[]
  readonly runs: { readonly cost: Cost; readonly done: number }[]
}

/**
 * What the decision costs a request: GET, HEAD and PUT of private objects of 1 KiB in a bucket without documents, in
 * one with a policy and in one with ACLs, and at the gateway itself, in turn.
 */
export async function authorizer(target: Target, rounds: number): Promise<void> {
  await prepare(target)
  for (const method of ['PUT', 'GET', 'HEAD']) {
    const ways: Way[] = Object.entries(BUCKETS).map(([bucket, name]) => ({
      name,
      to: target.proxy,
      shots: () => signed(target, method, bucket),
      runs: [],
    }))
    ways.push({ name: 'direct', to: target.gateway, shots: () => plain(target, method), runs: [] })
    for (let round = 0; round < rounds; round++) {
      await inTurn(
        round,
        ways.map((way) => () => run(target, way)),
      )
    }
    report(method, ways)
  }
}

async function prepare(target: Target): Promise<void> {
  const set = async (path: string, headers: Record<string, string>, body?: string) => {
    const request = { method: 'PUT', target: path, headers, body: body === undefined ? undefined : Buffer.from(body) }
    const { status, code } = await send(target.owner, request)
    if (status >= 300) throw new Error(`PUT ${path}: ${status} ${code}`)
  }
  await set('/bench-policy', {})
  await set('/bench-policy?policy=', {}, JSON.stringify(policyOf('arn:aws:s3:::bench-policy')))
  await set('/bench-acls', { 'x-amz-object-ownership': 'ObjectWriter' })
  await set('/bench-acls?acl=', { 'x-amz-acl': 'authenticated-read' })
  const agent = new http.Agent({ keepAlive: true })
  for (const bucket of Object.keys(BUCKETS)) {
    for (const shot of signed(target, 'PUT', bucket)) await fire(agent, target.proxy, shot)
  }
  agent.destroy()
}

/** Reads for a partner, and none for other networks: the gateway has no rules that say this. */
function policyOf(arn: string): object {
  return {
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Principal: { CanonicalUser: 'b'.repeat(64) },
        Action: 's3:GetObject',
        Resource: `${arn}/press/*`,
      },
      {
        Effect: 'Deny',
        Principal: '*',
        Action: 's3:*',
        Resource: [arn, `${arn}/*`],
        Condition: { NotIpAddress: { 'aws:SourceIp': ['127.0.0.0/8', '::1'] } },
      },
    ],
  }
}

function signed(target: Target, method: string, bucket: string): Shot[] {
  return keys().map((key) => ({ method, path: target.s3(method, key, bucket), headers: {} }))
}

async function run(target: Target, { to, shots, runs }: Way): Promise<void> {
  const list = await shots()
  let done = 0
  const cost = await measure(target, async () => {
    done = await hammer(to, list, SECONDS)
  })
  runs.push({ cost, done })
}

/**
 * One line for each way: operations a second, the median of the ratios to the gateway and to no policy by rounds, and
 * CPU time.
 */
function report(method: string, ways: readonly Way[]): void {
  const rates = ways.map(({ runs }) => runs.map(({ cost, done }) => done / cost.seconds))
  const [plainRates = [], directRates = []] = [rates[0], rates.at(-1)]
  console.log(`${method} 1 KiB, ${CONNECTIONS} connections, load ${loadavg()[0]?.toFixed(1)}`)
  for (const [at, { name, runs }] of ways.entries()) {
    const own = rates[at] ?? []
    const ratio = (to: readonly number[]) => median(own.map((rate, n) => rate / (to[n] ?? Number.NaN))).toFixed(2)
    const cpu = median(runs.map(({ cost, done }) => (cost.cpu.process / done) * 10_000)).toFixed(2)
    console.log(
      `  ${name.padEnd(10)} ${median(own).toFixed(0).padStart(6)} op/s   of direct ${ratio(directRates)}   of no policy ${ratio(plainRates)}   CPU s per 10000 ${cpu}`,
    )
  }
}
