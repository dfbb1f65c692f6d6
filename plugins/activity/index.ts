import { defineCall, definePlugin, S3Error, z } from 'dealgate/plugin'
import { Activity } from './activity.js'
import { quantile } from './counts.js'
import { type IntervalRecord, PERIODS } from './series.js'

/** Counts the requests of the server, and tells how many there were. */
export default definePlugin({
  name: 'activity',
  standard: true,
  summary: 'Counts the requests to the server, by time, and what is stored.',
  create(_, host) {
    const activity = new Activity(host)
    return {
      operations: [getActivity(activity)],
      requestEnded: (ended) => activity.count(ended),
      start: async () => activity.start(),
      stop: () => activity.stop(),
    }
  },
})

function getActivity(activity: Activity) {
  return defineCall({
    name: 'GetActivity',
    source: 'docs/observability.md#activity',
    summary:
      'Requests, errors, bytes and times of the last 24 hours in intervals of five minutes, or of 31 days by the hour, of all proxies on the state.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/activity/v1' },
    query: z.strictObject({
      period: z.enum(['day', 'month']).optional().describe('`day`, the default: five minutes each. `month`: hours.'),
    }),
    result: z.object({
      IntervalSeconds: z.int(),
      Intervals: z
        .array(
          z.object({
            Start: z.iso.datetime(),
            Requests: z.int().describe('Without those of /-/live and /-/ready.'),
            ClientErrors: z.int().describe('Answers with status 400 to 499.'),
            ServerErrors: z.int().describe('Answers with status 500 and above.'),
            BytesIn: z.int().describe('Bytes of request bodies that arrived.'),
            BytesOut: z.int().describe('Bytes of response bodies that were sent.'),
            P50Milliseconds: z.number().optional().describe('Half of the requests took no longer, to within 19 %.'),
            P99Milliseconds: z.number().optional(),
            StoredBytes: z.int().optional().describe('Of the account of the server at the gateway; of hours alone.'),
            FreeBytes: z.int().optional().describe('On the disk of the data folder; of hours alone.'),
          }),
        )
        .meta({ element: 'Interval' })
        .describe('Those that had requests or a sample, the oldest first.'),
    }),
    async answer({ query: { period = 'day' } }, { caller }) {
      if (caller?.identity.account) {
        throw new S3Error('AccessDenied', {
          message: 'Only key pairs of the account of the server itself may read its activity.',
        })
      }
      const { ms } = PERIODS[period]
      return {
        IntervalSeconds: ms / 1000,
        Intervals: (await activity.last(period)).map((record) => shown(record, ms)),
      }
    },
  })
}

function shown({ interval, times, storedBytes, freeBytes, ...counts }: IntervalRecord, ms: number) {
  const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)]
  return {
    Start: new Date(interval * ms).toISOString(),
    Requests: counts.requests,
    ClientErrors: counts.clientErrors,
    ServerErrors: counts.serverErrors,
    BytesIn: counts.bytesIn,
    BytesOut: counts.bytesOut,
    ...(p50 !== undefined && { P50Milliseconds: p50, P99Milliseconds: p99 }),
    ...(storedBytes !== undefined && { StoredBytes: storedBytes }),
    ...(freeBytes !== undefined && { FreeBytes: freeBytes }),
  }
}
