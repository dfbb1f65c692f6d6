import { createHash } from 'node:crypto'
import {
  type Context,
  type Identity,
  type PluginHost,
  type Records,
  type RunningJob,
  S3Error,
  type S3Request,
} from 'dealgate/plugin'
import { LRUCache } from 'lru-cache'

/** The service refuses the token of a request, or wants one. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused'
}

/** Runs a call whose token cannot be renewed. A refused token is UpstreamAuthFailed with this message. */
export async function requireToken<T>(run: () => Promise<T>, message: string): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof TokenRefused) throw new S3Error('UpstreamAuthFailed', { message, cause: error })
    throw error
  }
}

/** The caller of a service: an identity, or the owner of a token. */
export interface Actor {
  readonly identity: Identity | undefined
  /** A JWT that the request itself carries; it takes precedence. */
  readonly bearer: string | undefined
}

const BEARER = /^Bearer +([!-~]{1,8192}) *$/i

/**
 * @param service `task platform`
 * @param header with the token of the service in signed requests, in lower case. Unsigned ones have it in Authorization
 * @throws S3Error InvalidArgument for a malformed header
 */
export function actorOf(
  { caller }: Pick<Context, 'caller'>,
  { headers }: Pick<S3Request, 'headers'>,
  { service, header }: { readonly service: string; readonly header: string },
): Actor {
  const override = headers[header]
  const bearer = BEARER.exec(String(override ?? headers.authorization ?? ''))?.[1]
  if (override !== undefined && bearer === undefined) {
    throw new S3Error('InvalidArgument', {
      message: `${header} must be Bearer and the token of the ${service}.`,
      fields: { ArgumentName: header },
    })
  }
  return { identity: caller?.identity, bearer }
}

/** The identity that has signed a request. Throws AccessDenied for an unsigned one. */
export function signedIdentity({ caller }: Pick<Context, 'caller'>): Identity {
  if (caller) return caller.identity
  throw new S3Error('AccessDenied', { message: 'Only a signed request can do this.' })
}

/** The tokens that requests carry, sealed in the inputs of the jobs that they order. */
export class JobTokens {
  readonly #host: Pick<PluginHost, 'sealer'>
  readonly #purpose: string

  /** @param purpose what the tokens are sealed for: `task:job-bearer` */
  constructor(host: Pick<PluginHost, 'sealer'>, purpose: string) {
    this.#host = host
    this.#purpose = purpose
  }

  /** The member `bearer` of the input of a job, if the request carries a token. */
  async seal({ bearer }: Actor): Promise<{ readonly bearer?: string }> {
    return bearer === undefined ? {} : { bearer: await this.#host.sealer.seal(bearer, this.#purpose) }
  }

  /**
   * The actor of a job: the token of the request, or the identity that ordered it.
   * @param lost code of the error for a token that cannot be decrypted any more
   */
  async actorOf(
    { input, context }: Pick<RunningJob<{ readonly bearer?: string }>, 'input' | 'context'>,
    lost: 'WalletNotLinked' | 'PlatformIdentityRequired',
  ): Promise<Actor> {
    if (input.bearer === undefined) return { identity: context.caller?.identity, bearer: undefined }
    const bearer = await this.#host.sealer.open(input.bearer, this.#purpose)
    if (bearer === undefined) throw new S3Error(lost, { message: 'The token of the request is lost.' })
    return { identity: undefined, bearer }
  }
}

interface SealedSecret {
  /** JSON, sealed. */
  readonly sealed: string
  /** ms since 1970. */
  readonly stored: number
}

/**
 * A secret of each identity, such as a log-in at a service, sealed. It belongs to an access key with its secret: what
 * gets another secret, or is made anew under the same id, does not inherit it.
 */
export class IdentitySecrets<T extends object> {
  readonly #records: Records<SealedSecret>
  readonly #host: Pick<PluginHost, 'sealer' | 'now'>
  readonly #options: IdentitySecretsOptions

  constructor(host: PluginHost, options: IdentitySecretsOptions) {
    this.#host = host
    this.#options = options
    this.#records = host.state.records(options.records)
  }

  /** Undefined for none, also for one that this server cannot decrypt. */
  async get(identity: Identity): Promise<T | undefined> {
    const kept = await this.#records.get(identity.accessKeyId)
    const text = kept && (await this.#host.sealer.open(kept.sealed, this.#purposeOf(identity)))
    return text === undefined ? undefined : (JSON.parse(text) as T)
  }

  /** Durable when it resolves. Throws S3Error if secrets cannot be sealed here. */
  async set(identity: Identity, secret: T): Promise<void> {
    const sealed = await this.#host.sealer.seal(JSON.stringify(secret), this.#purposeOf(identity))
    await this.#records.set(identity.accessKeyId, { sealed, stored: this.#host.now() })
  }

  /**
   * Changes or forgets a secret, unless another has replaced it meanwhile.
   * @param to the secret that is kept from now on; undefined for none
   */
  async change(identity: Identity, to: (secret: T) => T | undefined): Promise<void> {
    const known = await this.#records.get(identity.accessKeyId)
    const secret = known && (await this.get(identity))
    if (!secret) return
    const next = to(secret)
    if (next === secret) return
    const sealed = next && (await this.#host.sealer.seal(JSON.stringify(next), this.#purposeOf(identity)))
    await this.#records.change(identity.accessKeyId, (kept) => {
      if (kept?.sealed !== known?.sealed) return kept
      return sealed === undefined ? undefined : { sealed, stored: this.#host.now() }
    })
  }

  #purposeOf(identity: Identity): string {
    return `${this.#options.purpose}:${identity.accessKeyId}:${this.#options.hash(identity)}`
  }
}

export interface IdentitySecretsOptions {
  /** Name of the records, which begins with that of the plugin. */
  readonly records: string
  /** What the secrets are sealed for: `task:login`. */
  readonly purpose: string
  /** Hash of the secret that an identity must keep: `secretKeyHash` or `accountOrKeyHash`. */
  readonly hash: (identity: Identity) => string
}

/** Hash of the secret key that an identity signs with, hex. */
export function secretKeyHash({ secretAccessKey }: Identity): string {
  return createHash('sha256').update(secretAccessKey).digest('hex')
}

/** Hash of the secret key of the account of temporary credentials, and of the own one of other identities, hex. */
export function accountOrKeyHash(identity: Identity): string {
  return identity.accountKeyHash ?? secretKeyHash(identity)
}

/** Times that a JWT states, ms since 1970. Not verified. */
export interface TokenTimes {
  readonly issued?: number
  readonly expires?: number
}

/** Returns no times for what is no JWT. */
export function timesOfToken(token: string): TokenTimes {
  try {
    const { iat, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return {
      ...(Number.isFinite(iat) && { issued: iat * 1000 }),
      ...(Number.isFinite(exp) && exp > 0 && exp < 1e11 && { expires: exp * 1000 }),
    }
  } catch {
    return {}
  }
}

/** Failed sign-ins of one access key before further ones have to wait. */
const FREE = 5
const WINDOW_MS = 15 * 60_000

/** Most access keys that are counted. */
const MAX_COUNTED = 10_000

interface Failures {
  readonly count: number
  /** ms since 1970. */
  readonly since: number
}

/**
 * Limits failed sign-ins of each access key at a service behind the server, in this process, so that a holder of a key
 * does not use the server, whose address the service may trust, to guess passwords.
 */
export class Attempts {
  readonly #failures = new LRUCache<string, Failures>({ maxSize: MAX_COUNTED, sizeCalculation: () => 1 })
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Runs a sign-in, which counts as failed until it has succeeded. Throws S3Error SlowDown. */
  async run<T>(accessKeyId: string, attempt: () => Promise<T>): Promise<T> {
    const now = this.#now()
    const known = this.#failures.get(accessKeyId)
    const failures = known && now - known.since < WINDOW_MS ? known : { count: 0, since: now }
    if (failures.count >= FREE) {
      const seconds = Math.ceil((failures.since + WINDOW_MS - now) / 1000)
      throw new S3Error('SlowDown', {
        message: `Too many sign-ins have failed. Try again in ${seconds} s.`,
        headers: { 'retry-after': String(seconds) },
      })
    }
    this.#failures.set(accessKeyId, { ...failures, count: failures.count + 1 })
    const result = await attempt()
    this.#failures.delete(accessKeyId)
    return result
  }
}
