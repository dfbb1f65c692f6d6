import type { AnyOperation } from '../forms/plugin.js'

/** Formats the route of an operation as a request line: `GET /{Bucket}?x-deal=`. */
export function routeText({ on }: AnyOperation): string {
  const path = { service: on.path ?? '/', bucket: '/{Bucket}', object: '/{Bucket}/{Key}' }[on.resource]
  const query = (on.query ?? []).map((name) => (/^x-[^=]*$/.test(name) ? `${name}=` : name))
  return `${on.method} ${path}${query.length > 0 ? `?${query.join('&')}` : ''}${on.header ? ` with ${on.header}` : ''}`
}
