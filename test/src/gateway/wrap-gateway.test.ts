import t from 'tap'
import { createLogger } from '../../../common/log.js'
import { Grants, grantedGateway } from '../../../src/access/grants.js'
import { restrictGateway } from '../../../src/access/restrict-gateway.js'
import { Rights } from '../../../src/access/rights.js'
import type { Gateway } from '../../../src/api/gateway.js'
import { accountGateway, guardGateway } from '../../../src/gateway/account/account-gateway.js'
import { ExactPaths } from '../../../src/gateway/account/exact-paths.js'
import type { GatewayClient } from '../../../src/gateway/client.js'
import { stagingBucket } from '../../../src/gateway/staging.js'
import { gatewayMethods } from '../../../src/gateway/wrap-gateway.js'

const names = Object.keys(gatewayMethods) as (keyof Gateway)[]

/** A gateway that answers nothing and records what reaches it. */
function recorder() {
  const reached: string[] = []
  const methods = names.map((name) => [name, (...args: unknown[]) => reached.push(JSON.stringify([name, ...args]))])
  return { reached, gateway: Object.fromEntries(methods) as Gateway }
}

/** The arguments of a use of a method in a bucket, as the list of methods declares them. */
function argsOf(name: keyof Gateway, bucket: string): unknown[] {
  const { on } = gatewayMethods[name]
  if (on === 'gateway') return []
  if (on === 'call') return [{ method: 'POST', endpoint: 'deal', bucket, key: 'k', access: 'write' }]
  const first = on === 'key' ? [bucket, 'k'] : [bucket]
  if (name === 'stat') return [...first, { id: 'null' }]
  if (name === 'requireLockable') return first
  if (name === 'setLock') return [...first, { id: 'null' }, { hold: true }, false]
  return name === 'list' ? [bucket, { prefix: '', delimiter: '', after: '', limit: 1 }] : [...first, 'more']
}

async function use(gateway: Gateway, name: keyof Gateway, bucket: string): Promise<unknown> {
  return (gateway[name] as (...args: unknown[]) => unknown)(...argsOf(name, bucket))
}

/** What grantedGateway writes out. */
const OWN: readonly (keyof Gateway)[] = ['list', 'stat', 'download', 'upload']
const ofBuckets = names.filter((name) => gatewayMethods[name].on !== 'gateway')

t.test('every method of the gateway is listed, and wrapped', async (t) => {
  const full = accountGateway({} as GatewayClient, {} as GatewayClient)
  t.same(Object.keys(full).sort(), [...names].sort())
  const { gateway, reached } = recorder()
  const wrapped = grantedGateway(gateway, new Grants(), { look: 'read' })
  for (const name of names) {
    await use(wrapped, name, 'photos')
    const [reachedBy, ...args] = JSON.parse(reached.pop() ?? '[]')
    t.equal(reachedBy, name)
    if (!OWN.includes(name)) t.same(args, argsOf(name, 'photos'), 'with all that was given')
  }
})

t.test('no method reaches a bucket in which the rights allow nothing', async (t) => {
  const { gateway, reached } = recorder()
  const restricted = restrictGateway(gateway, new Rights([{ bucket: 'films', access: 'readwrite' }]))
  for (const name of ofBuckets) await t.rejects(use(restricted, name, 'photos'), { code: 'AccessDenied' }, name)
  t.same(reached, [])
})

t.test('a right to read reaches no method that writes', async (t) => {
  const { gateway, reached } = recorder()
  const restricted = restrictGateway(gateway, new Rights([{ bucket: 'photos', access: 'read' }]))
  const writing = ofBuckets.filter(
    (name) => ['write', 'both'].includes(gatewayMethods[name].needs) || gatewayMethods[name].on === 'call',
  )
  for (const name of writing) await t.rejects(use(restricted, name, 'photos'), { code: 'AccessDenied' }, name)
  t.same(reached, [])
})

t.test('no method reaches a bucket of staged parts', async (t) => {
  const { gateway, reached } = recorder()
  const hidden = guardGateway(
    gateway,
    {} as GatewayClient,
    new ExactPaths(createLogger({ level: 'silent' }), Date.now),
    'hidden',
  )
  const bucket = stagingBucket('0123456789abcdef')
  for (const name of ofBuckets.filter((one) => one !== 'bucketExists' && one !== 'makeBucket'))
    await t.rejects(use(hidden, name, bucket), { code: 'NoSuchBucket' }, name)
  t.equal(await hidden.bucketExists(bucket), false)
  await t.rejects(hidden.makeBucket(bucket), { code: 'BucketAlreadyExists' })
  t.same(reached, [])
})
