import type { GatewayContext } from '../context.js'

/** True for paths of the gateway itself, false for objects on its S3 side. */
export function isOwnPath({ names }: Pick<GatewayContext, 'names'>, path: string): boolean {
  return path === `/${names.path}` || path.startsWith(`/${names.path}/`)
}
