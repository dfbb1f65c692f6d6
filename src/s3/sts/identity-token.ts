import { stsError } from './sts-error.js'

/** What the token of a platform says about itself. Nothing of it is verified: the platform alone can do that. */
export interface TokenClaims {
  readonly subject: string | undefined
  readonly issuer: string | undefined
  readonly audience: string | undefined
  /** Milliseconds since 1970; undefined when the token does not expire. */
  readonly expires: number | undefined
}

const JWT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/

/**
 * Reads the claims of a JWT, so that only what can be one is sent to the platform.
 * @throws S3Error InvalidIdentityToken, without any part of the token
 */
export function readIdentityToken(token: string): TokenClaims {
  const [, header = '', payload = ''] = JWT.exec(token) ?? []
  const head = objectOf(header)
  const claims = objectOf(payload)
  if (typeof head?.alg !== 'string' || head.alg.toLowerCase() === 'none' || !claims) {
    throw stsError('InvalidIdentityToken', 'The web identity token is no signed JWT of the task platform.')
  }
  const text = (value: unknown) => (typeof value === 'string' ? value.slice(0, 255) : undefined)
  return {
    subject: typeof claims.sub === 'number' ? String(claims.sub) : text(claims.sub),
    issuer: text(claims.iss),
    audience: text(claims.aud),
    expires: typeof claims.exp === 'number' && Number.isFinite(claims.exp) ? claims.exp * 1000 : undefined,
  }
}

function objectOf(part: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}
