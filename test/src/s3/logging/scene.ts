import type { Test } from 'tap'
import type { ProxyOptions } from '../../../../src/server/proxy-options.js'
import { contentMd5 } from '../../../support/content/content.js'
import { until } from '../../../support/waiting.js'
import { startWorld } from '../../access/authorizer/world.js'

/** The fields of a line: those in quotes and brackets count as one. */
const FIELD = /\[[^\]]*\]|"[^"]*"|\S+/g

export const enabled = (target: string, prefix: string, more = '') =>
  `<BucketLoggingStatus><LoggingEnabled><TargetBucket>${target}</TargetBucket><TargetPrefix>${prefix}</TargetPrefix>${more}</LoggingEnabled></BucketLoggingStatus>`

/** The buckets `source` and `logs` of the owner, with logs every second. */
export async function startLogging(t: Test, options: Partial<ProxyOptions> = {}) {
  const world = await startWorld(t, undefined, { bucketLogIntervalMs: 1000, ...options })
  const { as, status, server } = world
  await as.owner({ method: 'PUT', path: '/source' })
  await as.owner({ method: 'PUT', path: '/logs' })
  const put = (query: string, body: string, bucket = 'source') =>
    status('owner', 'PUT', `/${bucket}`, { query: { [query]: '' }, body, headers: contentMd5(body) })
  const objects = async (bucket = 'logs') =>
    ((await server.s3.listObjectsV2({ Bucket: bucket })).Contents ?? []).map(({ Key = '' }) => Key)
  const textOf = async (key: string, bucket = 'logs') =>
    (await as.owner({ method: 'GET', path: `/${bucket}/${key}` })).body
  /** All lines that have arrived in `logs` below a prefix, as their fields. */
  const lines = async (prefix = '') => {
    const keys = (await objects()).filter((key) => key.startsWith(prefix))
    const texts = await Promise.all(keys.map((key) => textOf(key)))
    return texts.flatMap((text) => text.split('\n').slice(0, -1)).map((line) => line.match(FIELD) ?? [])
  }
  const arrived = (
    what: string,
    isIt: (fields: readonly string[]) => boolean,
    prefix = '',
  ): Promise<readonly string[]> => until(`the log has ${what}`, async () => (await lines(prefix)).find(isIt))
  return { ...world, set: put, objects, textOf, lines, arrived }
}
