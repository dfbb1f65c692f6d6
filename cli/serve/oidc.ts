import type { Logger } from '../../common/log.js'
import type { Config } from '../config/config.js'
import type { Issuer } from '../oidc/issuer.js'
import { parseRole } from '../oidc/roles.js'

/**
 * The OpenID Connect issuer of the options; undefined without one. It is not asked for anything yet.
 * @param owner access key id of the owner, in force
 */
export async function issuerOf(
  { oidcIssuer: issuer, oidcClientId, oidcAudience, oidcRole }: Config,
  owner: () => string,
  log: Logger,
): Promise<Issuer | undefined> {
  if (issuer === undefined) return undefined
  const { Issuer } = await import('../oidc/issuer.js')
  const audiences = [...(oidcClientId === undefined ? [] : [oidcClientId]), ...oidcAudience]
  return new Issuer({ issuer, audiences, roles: oidcRole.map(parseRole), owner, log })
}
