import { type Context, defineCall, definePlugin, type Records, z } from 'dealgate/plugin'

const DAY_MS = 86_400_000
/** Within so many days, of which the counts are told. */
const DAYS = [1, 7, 30]
/** Most objects that are looked at, the time after which that ends, ms, and the keys of one listing. */
const MAX_OBJECTS = 10_000
const MAX_MS = 5000
const LISTED = 1000

const count = z.int().min(0)

const pass = z.object({
  Ended: z.iso.datetime(),
  Complete: z.boolean().describe('False if it ended early: it is repeated within --lifecycle-interval-minutes.'),
  Scanned: count.describe('Objects and versions that were looked at.'),
  Expired: count.describe('Current objects that were removed.'),
  Removed: count.describe('Versions and delete markers that were removed for good.'),
  Transitioned: count.describe('Objects and versions that were moved into another storage class.'),
  Aborted: count.describe('Multipart uploads that were aborted.'),
  Locked: count.describe('Versions that are due, and stay because they are locked.'),
  Refused: count.describe('Objects that are not encrypted, and may be only encrypted where their rule moves them.'),
  Failed: count,
})

type LastPass = { readonly ended: number; readonly complete: boolean } & Readonly<
  Record<'scanned' | 'expired' | 'removed' | 'transitioned' | 'aborted' | 'locked' | 'refused' | 'failed', number>
>

function getLifecycleState(records: () => Records<LastPass>, now: () => number) {
  return defineCall({
    name: 'GetLifecycleState',
    source: 'docs/extensions.md#lifecycle',
    summary: 'Returns when the lifecycle rules of a bucket were applied last, what they did, and what expires soon.',
    access: 'owner',
    action: ['s3:GetLifecycleConfiguration', 'lifecycle:GetLifecycleState'],
    on: { method: 'GET', resource: 'bucket', subresource: 'x-lifecycle' },
    result: z.object({
      Bucket: z.string(),
      Rules: count.describe('Rules that are enabled.'),
      LastPass: pass.optional().describe('Absent before the first one.'),
      NextDay: z.iso.datetime().describe('When the next objects become due: midnight UTC.'),
      Due: z
        .array(z.object({ Days: count, Objects: count, Bytes: count }))
        .meta({ element: 'Expiring' })
        .describe('Current objects that a rule removes within so many days.'),
      Looked: count.describe('Objects that were looked at for Due: the first ones of the bucket.'),
      More: z.boolean().describe('The bucket has more.'),
    }),
    async answer({ request: { bucket } }, context) {
      const settings = await context.settings.confirmed(bucket, 'lifecycle')
      const rules = settings?.rules.filter(({ enabled }) => enabled).length ?? 0
      const last = settings && (await records().get(bucket))
      const found = rules > 0 ? await dueIn(bucket, context, now()) : { due: DAYS.map(none), looked: 0, more: false }
      return {
        ...{ Bucket: bucket, Rules: rules },
        ...(last && { LastPass: shown(last) }),
        NextDay: new Date((Math.floor(now() / DAY_MS) + 1) * DAY_MS).toISOString(),
        ...{ Due: found.due, Looked: found.looked, More: found.more },
      }
    },
  })
}

function none(days: number) {
  return { Days: days, Objects: 0, Bytes: 0 }
}

function shown({ ended, complete, ...counts }: LastPass): z.output<typeof pass> {
  const { scanned, expired, removed, transitioned, aborted, locked, refused, failed } = counts
  return {
    ...{ Ended: new Date(ended).toISOString(), Complete: complete, Scanned: scanned, Expired: expired },
    ...{ Removed: removed, Transitioned: transitioned, Aborted: aborted, Locked: locked },
    ...{ Refused: refused, Failed: failed },
  }
}

async function dueIn(bucket: string, context: Pick<Context, 'store' | 'expirations'>, now: number) {
  const { store } = context
  const expires = await context.expirations(bucket)
  const ends = Date.now() + MAX_MS
  const due = DAYS.map(none)
  let [after, looked, more] = ['', 0, true]
  while (more && looked < MAX_OBJECTS && Date.now() < ends) {
    const { entries, truncated } = await store.list(bucket, { prefix: '', delimiter: '', after, limit: LISTED })
    for (const entry of entries) {
      if (entry.kind !== 'object') continue
      after = entry.key
      looked++
      const time = expires(entry)
      if (time === undefined) continue
      for (const sum of due.filter(({ Days }) => time <= now + Days * DAY_MS)) {
        sum.Objects++
        sum.Bytes += entry.size
      }
    }
    more = truncated && entries.length > 0
  }
  return { due, looked, more }
}

/** The call that shows what lifecycle rules have done. */
export default definePlugin({
  name: 'lifecycle',
  standard: true,
  summary: 'Shows what the lifecycle rules of a bucket have done, and what is due.',
  create: (_options, host) => ({
    operations: [getLifecycleState(() => host.state.records('lifecycle-last-passes'), host.now)],
  }),
})
