import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose'
import { z } from 'zod'
import type { Logger } from '../../common/log.js'
import { ServiceClient } from '../../common/service-client.js'
import type { RefusedToken, WebIdentities, WebIdentity } from '../../src/api/identity.js'
import { keysOf, mayName, type OidcRole, readIssuer } from './roles.js'

interface IssuerOptions {
  readonly issuer: string
  /** Of which a token must name one. */
  readonly audiences: readonly string[]
  readonly roles: readonly OidcRole[]
  /** Access key id of the owner in force, whose rights no token gives. */
  readonly owner: () => string
  readonly log: Pick<Logger, 'warn'>
}

/** https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata */
const metadata = z.object({
  issuer: z.string(),
  authorization_endpoint: z.string().optional(),
  token_endpoint: z.string().optional(),
  jwks_uri: z.string(),
})

type Metadata = z.infer<typeof metadata>

const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(100) })

/** Signatures by keys that the issuer alone has: one by a secret of the client could be made by every client. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

/** How long what the issuer has said of itself is used, ms, and for how long it is not asked again after a failure. */
const FRESH_MS = 600_000
const AGAIN_MS = 5000
/** Least pause between two readings of the keys, ms: tokens name keys as they like. */
const COOL_MS = 30_000
const TIMEOUT_MS = 5000
const MAX_BYTES = 512 * 1024
/** How far the clocks of the issuer and this machine may differ, s. */
const SKEW_SECONDS = 60

class IssuerError extends Error {
  override readonly name = 'IssuerError'
}

/** An OpenID Connect issuer. It is asked when it is needed: a server starts without it. */
export class Issuer implements WebIdentities {
  readonly issuer: string
  readonly #options: IssuerOptions
  readonly #metadata: Remembered<Metadata>
  readonly #newKeys: Remembered<JSONWebKeySet>
  #keys: { readonly set: JSONWebKeySet; readonly at: number } | undefined

  constructor(options: IssuerOptions) {
    this.#options = options
    this.issuer = options.issuer
    this.#metadata = new Remembered(() => this.#discover(), FRESH_MS)
    this.#newKeys = new Remembered(() => this.#readKeys(), 0)
  }

  /**
   * The origins that a page asks to sign in: of the issuer, and of the endpoint for tokens.
   * @returns `problem` says why the issuer cannot be used now; the origin of the issuer is known without it
   */
  async origins(): Promise<{ readonly origins: readonly string[]; readonly problem?: string }> {
    const own = new URL(this.issuer).origin
    try {
      const { token_endpoint, authorization_endpoint } = await this.#metadata.get()
      if (token_endpoint === undefined || authorization_endpoint === undefined)
        return { origins: [own], problem: 'The issuer names no endpoints for the authorization code flow.' }
      this.#trusted('authorization_endpoint', authorization_endpoint)
      return { origins: [...new Set([own, this.#trusted('token_endpoint', token_endpoint).origin])] }
    } catch (error) {
      return { origins: [own], problem: this.#reason(error) }
    }
  }

  async verify(token: string): Promise<WebIdentity | RefusedToken> {
    try {
      return this.#identityOf(await this.#claimsOf(token))
    } catch (error) {
      if (error instanceof errors.JWTExpired)
        return { kind: 'expired', problem: 'The token has expired: sign in again.' }
      if (error instanceof errors.JWTClaimValidationFailed)
        return { kind: 'invalid', problem: `The claim ${error.claim} of the token is not as this server requires it.` }
      if (error instanceof errors.JOSEError)
        return { kind: 'invalid', problem: 'The signature of the token is not one of its issuer.' }
      return { kind: 'later', problem: this.#reason(error) }
    }
  }

  #identityOf(claims: JWTPayload): WebIdentity | RefusedToken {
    const { audiences, roles, owner } = this.#options
    const named = [claims.aud ?? []].flat()
    // https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
    const { azp } = claims
    if ((azp !== undefined && !audiences.includes(String(azp))) || (named.length > 1 && azp === undefined))
      return { kind: 'invalid', problem: 'The token was issued to another client (azp).' }
    const keys = keysOf(claims, roles).filter((key) => key !== owner())
    return { subject: String(claims.sub), audience: named.find((one) => audiences.includes(one)) ?? '', keys }
  }

  async #claimsOf(token: string): Promise<JWTPayload> {
    const verifyBy = async (set: JSONWebKeySet) => {
      const { issuer } = this
      const requiredClaims = ['exp', 'iat', 'sub']
      const audience = [...this.#options.audiences]
      const bounds = { issuer, audience, algorithms: ALGORITHMS, requiredClaims, clockTolerance: SKEW_SECONDS }
      return (await jwtVerify(token, createLocalJWKSet(set), bounds)).payload
    }
    try {
      return await verifyBy(await this.#keySet(FRESH_MS))
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      return verifyBy(await this.#keySet(COOL_MS))
    }
  }

  /** The keys of the issuer. @param oldest ms since they were read, at most */
  async #keySet(oldest: number): Promise<JSONWebKeySet> {
    if (this.#keys && performance.now() - this.#keys.at < oldest) return this.#keys.set
    return this.#newKeys.get()
  }

  /** Those of before stay as long as they are fresh: a token that names an unknown key must not end the others. */
  async #readKeys(): Promise<JSONWebKeySet> {
    const { jwks_uri } = await this.#metadata.get()
    const set = keySet.parse(await this.#read(this.#trusted('jwks_uri', jwks_uri))) as JSONWebKeySet
    this.#keys = { set, at: performance.now() }
    return set
  }

  async #discover(): Promise<Metadata> {
    const { href } = readIssuer(this.issuer)
    const url = new URL(`${href.replace(/\/$/, '')}/.well-known/openid-configuration`)
    const found = metadata.safeParse(await this.#read(url))
    if (!found.success) throw new IssuerError('it does not describe itself as an issuer')
    if (found.data.issuer !== this.issuer)
      throw new IssuerError(
        `it calls itself ${JSON.stringify(found.data.issuer.slice(0, 300))}: --oidc-issuer must say the same`,
      )
    return found.data
  }

  async #read(url: URL): Promise<unknown> {
    const at = url.pathname.lastIndexOf('/')
    const folder = `${url.origin}${url.pathname.slice(0, at)}`
    const last = url.pathname.slice(at + 1)
    const client = new ServiceClient({ service: 'issuer', url: folder, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES })
    try {
      // Addresses of some issuers end in a slash.
      const path = last === '' ? [] : [decodeURIComponent(last)]
      const { status, json } = await client.send({ method: 'GET', path, query: Object.fromEntries(url.searchParams) })
      if (status !== 200 || json === undefined) throw new IssuerError(`${url.href} answers with status ${status}`)
      return json
    } finally {
      await client.close()
    }
  }

  #trusted(name: string, text: string): URL {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url && mayName(new URL(this.issuer), url)) return url
    throw new IssuerError(`its ${name} is not an https URL`)
  }

  /** Says why the issuer cannot be used, for the client as for the log. */
  #reason(error: unknown): string {
    const own = error instanceof IssuerError ? error.message : 'it does not answer as it should'
    this.#options.log.warn({ err: error, issuer: this.issuer }, 'the OpenID Connect issuer cannot be used now')
    return `The issuer ${this.issuer} cannot be used now: ${own}.`
  }
}

/** A value that is read again when it is old, and not at once after a failure. */
class Remembered<T> {
  readonly #read: () => Promise<T>
  readonly #freshMs: number
  #known: { readonly value: Promise<T>; until: number } | undefined

  /** @param freshMs how long a value is used after it was read; all who ask meanwhile wait for the same one */
  constructor(read: () => Promise<T>, freshMs: number) {
    this.#read = read
    this.#freshMs = freshMs
  }

  get(): Promise<T> {
    if (this.#known && performance.now() < this.#known.until) return this.#known.value
    const known = { value: this.#read(), until: Number.POSITIVE_INFINITY }
    this.#known = known
    const keep = (ms: number) => () => {
      known.until = performance.now() + ms
    }
    known.value.then(keep(this.#freshMs), keep(AGAIN_MS))
    return known.value
  }
}
