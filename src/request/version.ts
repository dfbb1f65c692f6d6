import { S3Error } from '../common/errors/s3-error.js'
import type { Query } from './query.js'

/** Buckets have no versions: the only valid versionId is "null". Throws InvalidArgument for any other one. */
export function refuseVersion(query: Query): void {
  const version = query.get('versionId')
  if (version === undefined || version === 'null') return
  throw new S3Error('InvalidArgument', {
    message: 'Buckets of this gateway are not versioned: the only version id is "null".',
    fields: { ArgumentName: 'versionId', ArgumentValue: version },
  })
}
