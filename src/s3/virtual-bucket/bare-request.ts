import { Query } from '../../request/query.js'
import type { S3Request } from '../../request/s3-request.js'

/** Returns a plain GET of another resource of the service, by the caller of `request`. */
export function bareRequest(
  request: S3Request,
  { path, plugin, params }: Pick<S3Request, 'path' | 'plugin' | 'params'>,
): S3Request<'service'> {
  return {
    ...request,
    method: 'GET',
    resource: 'service',
    path,
    query: new Query(''),
    headers: {},
    bucket: undefined,
    key: undefined,
    params,
    plugin,
    get signal() {
      return request.signal
    },
  }
}
