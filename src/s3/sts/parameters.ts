import { S3Error } from '../../../common/errors/s3-error.js'
import { parseObject } from '../../../common/json.js'

/** The parameters of a call in the query protocol of AWS: each name once. */
export class Parameters {
  readonly #values: ReadonlyMap<string, string>

  /** Throws ValidationError for a repeated name. */
  constructor(body: string) {
    const values = new Map<string, string>()
    for (const [name, value] of new URLSearchParams(body)) {
      if (values.has(name)) throw stsError('ValidationError', `The parameter ${name.slice(0, 100)} is given twice.`)
      values.set(name, value)
    }
    this.#values = values
  }

  get(name: string): string | undefined {
    return this.#values.get(name)
  }

  /**
   * A text within bounds, counted in characters; undefined if it is absent. Throws ValidationError without the value,
   * which may be a secret.
   */
  text(name: string, { min, max, pattern }: TextBounds): string | undefined {
    const value = this.#values.get(name)
    if (value === undefined) return undefined
    if (value.length < min || value.length > max) {
      throw invalid(name, `Member must have a length of ${min} to ${max} characters`)
    }
    if (pattern && !pattern.test(value))
      throw invalid(name, `Member must satisfy the regular expression ${pattern.source}`)
    return value
  }

  required(name: string, bounds: TextBounds): string {
    return this.text(name, bounds) ?? missing(name)
  }

  /** Throws ValidationError for parameters other than these. */
  refuseOthers(names: readonly string[]): void {
    for (const name of this.#values.keys()) {
      if (!names.includes(name)) {
        throw stsError('ValidationError', `The parameter ${name.slice(0, 100)} is not supported for this action.`)
      }
    }
  }
}

interface TextBounds {
  readonly min: number
  readonly max: number
  readonly pattern?: RegExp
}

function missing(name: string): never {
  throw invalid(name, 'Member must not be null')
}

function invalid(name: string, constraint: string) {
  const shown = name.charAt(0).toLowerCase() + name.slice(1)
  return stsError(
    'ValidationError',
    `1 validation error detected: Value at '${shown}' failed to satisfy constraint: ${constraint}`,
  )
}

/** What the token of a platform says about itself. Nothing of it is verified: the platform alone can do that. */
interface TokenClaims {
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
  const head = parseObject(Buffer.from(header, 'base64url').toString('utf8'))
  const claims = parseObject(Buffer.from(payload, 'base64url').toString('utf8'))
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

/**
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html#API_AssumeRoleWithWebIdentity_Errors
 */
const STATUSES = {
  AccessDenied: 403,
  ExpiredTokenException: 400,
  IDPCommunicationError: 400,
  InvalidAction: 400,
  InvalidIdentityToken: 400,
  MalformedPolicyDocument: 400,
  MissingAction: 400,
  MissingAuthenticationToken: 403,
  PackedPolicyTooLarge: 400,
  Throttling: 400,
  ValidationError: 400,
} as const

/** An error of the security token service. */
export function stsError(code: keyof typeof STATUSES, message: string, cause?: unknown): S3Error {
  return new S3Error(code, { status: STATUSES[code], message, ...(cause !== undefined && { cause }) })
}
