import type { RequestHead } from '../../../request/s3-request.js'

type Addressed = Pick<RequestHead, 'rawPath' | 'path' | 'host' | 'hostBucket' | 'secure'>

/**
 * Returns the part before `/-/` of an address that the client of this request can follow: the path that this server is
 * mounted at. If the host names a bucket, on which `/-/` would be a key, the address also names the service's own host.
 */
export function serviceAddress(request: Addressed): string {
  const { rawPath, path, host, hostBucket, secure } = request
  const mount = rawPath.endsWith(path) ? rawPath.slice(0, -path.length) : ''
  if (hostBucket === undefined) return mount
  return `${secure ? 'https' : 'http'}://${host.slice(hostBucket.length + 1)}${mount}`
}

export function jobAddress(request: Addressed, id: string): string {
  return `${serviceAddress(request)}/-/jobs/v1/${id}`
}
