import type { Context } from '../context.js'
import { getBucketLocation } from '../operations/bucket/get-bucket-location.js'
import { headBucket } from '../operations/bucket/head-bucket.js'
import { listObjects } from '../operations/bucket/list-objects.js'
import { listObjectsV2 } from '../operations/bucket/list-objects-v2.js'
import type { Operation } from '../registry/operation.js'
import type { AnyOperation } from '../registry/plugin.js'
import type { Row } from '../registry/table.js'
import type { S3Request } from '../request/s3-request.js'
import { empty } from '../response/reply.js'
import { listResources } from './list.js'
import { readables } from './resources.js'

const SOURCE = 'docs/extensions.md#the-virtual-bucket'
/** Some clients end the bucket's path with a slash. */
const PATHS = ['/-', '/-/'] as const

/**
 * The bucket `-`, which cannot be: what can be read below `/-/`, for clients that know only S3. Its operations are those of a bucket, over other content.
 * @param rows all operations there are, this one's too, known once the table is made
 */
export function virtualBucketOperations(rows: () => readonly Row[]): AnyOperation[] {
  const over = (context: Context, request: S3Request): Context => ({
    ...context,
    gateway: { ...context.gateway, bucketExists: async () => true },
    store: {
      ...context.store,
      list: (_bucket, query) => listResources(readables(rows()), query, request, context),
    },
  })
  const onService = (path: string, suffix: string, operation: Operation<'bucket'>): Operation<'service'> => ({
    name: `${operation.name}OfService${suffix}`,
    source: SOURCE,
    on: { ...operation.on, resource: 'service', path },
    run: (request, context) =>
      operation.run(
        { ...request, resource: 'bucket', bucket: '-', key: undefined, signal: request.signal },
        over(context, request),
      ),
  })
  return PATHS.flatMap((path, i) => {
    const suffix = i === 0 ? '' : 'Root'
    const bucketOperations = [listObjects, listObjectsV2, headBucket, getBucketLocation]
    return [
      ...bucketOperations.map((operation) => onService(path, suffix, operation)),
      {
        name: `CreateBucketOfService${suffix}`,
        source: SOURCE,
        // rclone makes sure that a bucket is there before it copies to it.
        on: { method: 'PUT', resource: 'service', path },
        run: async () => empty({ location: '/-' }),
      } satisfies Operation<'service'>,
    ]
  })
}
