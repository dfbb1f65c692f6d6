import type { Operation } from '../../plugins/forms/operation.js'
import type { AnyOperation } from '../../plugins/forms/plugin.js'
import type { Row } from '../../plugins/table/table.js'
import type { S3Request } from '../../request/s3-request.js'
import { empty } from '../../response/reply.js'
import type { Context } from '../../server/context.js'
import { getBucketLocation } from '../bucket/get-bucket-location.js'
import { headBucket } from '../bucket/head-bucket.js'
import { listObjects } from '../bucket/list-objects.js'
import { listObjectsV2 } from '../bucket/list-objects-v2.js'
import { listResources } from './list.js'
import { readables } from './resources.js'

const SOURCE = 'docs/extensions.md#the-virtual-bucket'
/** Some clients append a slash to the bucket's path. */
const PATHS = ['/-', '/-/'] as const

/**
 * Operations on the virtual bucket `-`, an impossible bucket name: it shows what is readable below `/-/` to clients
 * that know only S3. They are the operations of a bucket, with other content.
 * @param rows returns all operations, including these, once the table exists
 */
export function virtualBucketOperations(rows: () => readonly Row[]): AnyOperation[] {
  const over = (context: Context, request: S3Request): Context => {
    const gateway: Context['gateway'] = { ...context.gateway, bucketExists: async () => true }
    const list: Context['store']['list'] = (_, query) => listResources(readables(rows()), query, request, context)
    const { caller, checks, door, state, settings, births, server, limits, log, plugins, archive, jobs, own } = context
    const { as, authenticateForm } = context
    const same = { caller, checks, door, state, settings, births, server, limits, log, plugins, archive, jobs, own }
    return { ...same, as, authenticateForm, gateway, store: { ...context.store, list } }
  }
  const onService = (path: string, suffix: string, operation: Operation<'bucket'>): Operation<'service'> => ({
    name: `${operation.name}OfService${suffix}`,
    source: SOURCE,
    access: 'signed',
    action: 'none',
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
        // rclone creates a bucket before it copies to it.
        access: 'signed',
        action: 'none',
        on: { method: 'PUT', resource: 'service', path },
        run: async () => empty({ location: '/-' }),
      } satisfies Operation<'service'>,
    ]
  })
}
