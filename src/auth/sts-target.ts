import type { RequestHead } from '../request/s3-request.js'

/** True for requests to the path of the security token service, whose clients sign for the service `sts`. */
export function isStsTarget({
  method,
  resource,
  path,
}: Pick<RequestHead, 'resource' | 'path'> & { method: string }): boolean {
  return method === 'POST' && resource === 'service' && path === '/'
}

/** True for calls of the security token service, whose clients expect its form of errors. */
export function isStsCall(head: Parameters<typeof isStsTarget>[0] & Pick<RequestHead, 'headers'>): boolean {
  const type = head.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  return isStsTarget(head) && type === 'application/x-www-form-urlencoded'
}
