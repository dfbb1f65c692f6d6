import { PutBucketVersioningCommand } from '@aws-sdk/client-s3'
import t from 'tap'
import { S3Error } from '../../common/errors/s3-error.js'
import type { HeldLock } from '../../src/api/locks.js'
import { until } from '../support/waiting.js'
import { Bucket, start, startWithState, unavailable, withMember } from './complete-scene.js'

// Several calls that complete one upload, some of them with unknown outcomes: what each of them did stays decidable.

const Key = 'key'

/** Resolves when the test says so. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}

/** A server with a state that the test changes, and an upload that `complete` completes. */
async function startAttempts(...given: Parameters<typeof startWithState>) {
  const { between, begin, put, get } = await startWithState(...given)
  const complete = await begin(Key)
  return {
    ...{ between, complete: () => complete() },
    put: (body: string) => put(Key, body),
    get: () => get(Key),
    written: () => between.requests.filter(({ method }) => method === 'PUT').length,
  }
}

t.test(
  'a second Complete begins while the first is unknown, and writes nothing when that turns out done',
  async (t) => {
    let read = 0
    const { between, put, complete, written, get } = await startAttempts(t, 'legacy', ({ uploads }) => {
      const readPart: typeof uploads.readPart = async (...given) => {
        await uploads.readPart(...given)
        read++
      }
      return { uploads: withMember(uploads, 'readPart', readPart) }
    })
    await put('an older object')
    const [lookUps, later] = [gate(), gate()]
    let stored = false
    between.fate = async ({ method }) => {
      if (method !== 'PUT') {
        if (stored) await lookUps.opened
        return 'pass'
      }
      if (stored) {
        await later.opened
        return 'pass'
      }
      stored = true
      return 'cut-after'
    }
    await t.rejects(complete(), unavailable, 'its outcome is unknown')
    const before = { written: written(), read }
    const rival = put('the later object')
    const looked = between.requests.length
    const second = complete()
    await until('the second call looks at the key', () => between.requests.length > looked)
    // Now it is known that the first call took effect, and the later write has the key.
    lookUps.open()
    await until('the later write is at the gateway', () => written() > before.written)
    await until('the second call has read the parts', () => read > before.read)
    later.open()
    await rival
    t.match(await second, { ETag: /-1"$/ })
    t.equal(written(), before.written + 1, 'the second call has sent nothing')
    t.equal(await get(), 'the later object')
  },
)

t.test('a server that has lost its lock leaves the attempt of another one on record', async (t) => {
  const locks: { lost: boolean }[] = []
  const { between, put, complete, written, get } = await startAttempts(t, 'full', ({ locks: own }) => ({
    locks: {
      ...own,
      withName: (_name, run) => run(held({ lost: false })),
      withSubtree: (...given) => own.withSubtree(...given),
      withKey(bucket, key, run, options) {
        if (key !== Key) return own.withKey(bucket, key, run, options)
        const lock = { lost: false }
        locks.push(lock)
        return run(held(lock))
      },
    },
  }))
  await put('an older object')
  const first = gate()
  let at = 0
  between.fate = async ({ method }) => {
    if (method !== 'PUT') return 'pass'
    if (at++ > 0) return 'cut-after'
    await first.opened
    return 'pass'
  }
  const before = written()
  const late = complete()
  late.catch(() => {})
  await until('the first call is at the gateway', () => written() > before)
  const lock = locks.at(-1)
  if (!lock) throw new Error('the first call holds a lock')
  lock.lost = true
  await t.rejects(complete(), unavailable, 'another server has stored the object, and its answer is lost')
  first.open()
  await t.rejects(late, unavailable, 'the gateway refuses the first call')
  between.fate = () => 'pass'
  await put('the later object')
  const sent = written()
  t.match(await complete(), { ETag: /-1"$/ })
  t.equal(written(), sent, 'the repeated call has sent nothing')
  t.equal(await get(), 'the later object')
})

let fence = 0

/** A lock that keeps no other server out, as one that has expired. */
function held(lock: { readonly lost: boolean }): HeldLock {
  const ensure = () => {
    if (lock.lost) throw new S3Error('ServiceUnavailable', { message: 'the lock is lost' })
  }
  fence = Math.max(fence + 1, Date.now() * 1000)
  return { fence, ensure, raise: async () => ensure(), leave() {} }
}

t.test('a repeated Complete undoes no later write while versioning is suspended', async (t) => {
  const { s3, put, remove, get, begin, loseAnswer } = await start(t, 'full')
  for (const Status of ['Enabled', 'Suspended'] as const)
    await s3.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status } }))
  const replaced = await begin('replaced')
  await loseAnswer('replaced', replaced)
  await put('replaced', 'the later object')
  await replaced().catch(() => {})
  t.equal(await get('replaced'), 'the later object')
  await put('removed', 'an older object')
  const removed = await begin('removed')
  await loseAnswer('removed', removed)
  await remove('removed')
  await removed().catch(() => {})
  await t.rejects(get('removed'), { name: 'NoSuchKey' })
})
