import type { GatewayContext } from '../context.js'

/** True when the path is the gateway's own, and not an object's on its S3 side. */
export function isOwnPath({ names }: Pick<GatewayContext, 'names'>, path: string): boolean {
  return path === `/${names.path}` || path.startsWith(`/${names.path}/`)
}
