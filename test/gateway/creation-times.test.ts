import t from 'tap'
import type { GatewayBucket } from '../../src/api/gateway.js'
import { S3Error } from '../../src/common/errors/s3-error.js'
import { BELIEVED_MS, readCreationTimes } from '../../src/gateway/account/creation-times.js'
import { legacyFeatures } from '../../src/gateway/account/features.js'

function scripted() {
  let time = 1_000_000
  const gateway = {
    asks: 0,
    fixed: true,
    failing: false,
    buckets: [] as GatewayBucket[],
    features: async () => ({ ...legacyFeatures, fixedBuckets: gateway.fixed }),
    async listBuckets() {
      gateway.asks++
      if (gateway.failing) throw new Error('down')
      return gateway.buckets
    },
  }
  return { gateway, creationTimes: readCreationTimes(gateway, () => time), pass: (ms: number) => (time += ms) }
}

t.test('one question does for all buckets and for a while', async (t) => {
  const { gateway, creationTimes, pass } = scripted()
  gateway.buckets = [
    { name: 'a', creationDate: '2026-01-01T00:00:00.000000001Z' },
    { name: 'undated', creationDate: '0001-01-01T00:00:00Z' },
  ]
  t.same(await Promise.all(['a', 'a', 'undated', 'none'].map(creationTimes.cached)), [
    '2026-01-01T00:00:00.000000001Z',
    '2026-01-01T00:00:00.000000001Z',
    undefined,
    undefined,
  ])
  t.equal(gateway.asks, 1)
  gateway.buckets = [{ name: 'a', creationDate: '2026-01-02T00:00:00.000000000Z' }]
  t.equal(await creationTimes.cached('a'), '2026-01-01T00:00:00.000000001Z')
  pass(BELIEVED_MS - 1)
  t.equal(await creationTimes.cached('a'), '2026-01-01T00:00:00.000000001Z', 'nobody waits while it still goes')
  await new Promise(setImmediate)
  t.equal(gateway.asks, 2)
  t.equal(await creationTimes.cached('a'), '2026-01-02T00:00:00.000000000Z')
  pass(BELIEVED_MS)
  gateway.buckets = []
  t.equal(await creationTimes.cached('a'), undefined, 'and no longer')
  gateway.buckets = [{ name: 'a', creationDate: '2026-01-03T00:00:00.000000000Z' }]
  t.equal(await creationTimes.now('a'), '2026-01-03T00:00:00.000000000Z', 'now is now')
  t.equal(await creationTimes.cached('a'), '2026-01-03T00:00:00.000000000Z')
})

t.test('a gateway that fails', async (t) => {
  const { gateway, creationTimes, pass } = scripted()
  gateway.failing = true
  t.equal(await creationTimes.cached('a'), undefined)
  t.equal(await creationTimes.cached('a'), undefined)
  t.equal(gateway.asks, 1, 'is left alone for a while')
  await t.rejects(creationTimes.now('a'), /down/)
  gateway.failing = false
  gateway.buckets = [{ name: 'a', creationDate: '2026-01-01T00:00:00.000000001Z' }]
  pass(5000)
  t.equal(await creationTimes.cached('a'), '2026-01-01T00:00:00.000000001Z')
})

t.test('an account that is refused sees no bucket', async (t) => {
  const { gateway, creationTimes } = scripted()
  gateway.features = async () => {
    throw new S3Error('AccessDenied')
  }
  t.equal(await creationTimes.now('a'), undefined)
  t.equal(await creationTimes.cached('a'), undefined)
})

t.test('a gateway that does not answer is waited for once', async (t) => {
  const { gateway, creationTimes } = scripted()
  gateway.features = () => new Promise(() => {})
  t.same(await Promise.all([creationTimes.cached('a'), creationTimes.cached('b')]), [undefined, undefined])
  const next = creationTimes.cached('a').then(() => 'told at once')
  t.equal(await Promise.race([next, new Promise(setImmediate)]), 'told at once')
})

t.test('a gateway whose dates move is not asked', async (t) => {
  const { gateway, creationTimes } = scripted()
  gateway.fixed = false
  gateway.failing = true
  t.equal(await creationTimes.now('a'), undefined)
  t.equal(await creationTimes.cached('a'), undefined)
  t.equal(gateway.asks, 0)
})
