import { S3Error } from '../../errors/s3-error.js'
import type { Query } from '../../request/query.js'

/** There are no versions: only "null" names what is there. Throws InvalidArgument for any other versionId. */
export function refuseVersion(query: Query): void {
  const version = query.get('versionId')
  if (version === undefined || version === 'null') return
  throw new S3Error('InvalidArgument', {
    message: 'Buckets of this gateway are not versioned: the only version id is "null".',
    fields: { ArgumentName: 'versionId', ArgumentValue: version },
  })
}
