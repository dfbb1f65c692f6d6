import { createHash } from 'node:crypto'
import { RequestSigner } from '../../common/sign-request.js'
import { canonicalQuery, uriEncode } from '../../common/sigv4.js'
import type { S3Credentials, S3Location } from './s3-location.js'
import { S3Refusal } from './s3-refusal.js'

interface ToSign {
  readonly method: string
  /** Within the bucket; empty for the bucket itself. */
  readonly key: string
  /** Decoded. */
  readonly query?: Readonly<Record<string, string>> | undefined
  readonly body?: readonly Uint8Array[]
}

interface Signed {
  /** With the query. */
  readonly path: string
  readonly headers: Record<string, string>
  readonly signer: RequestSigner
}

/** Signs requests to a bucket with the credentials of the moment. A body is signed with its SHA-256. */
export class S3Signer {
  readonly #location: S3Location
  readonly #host: string
  readonly #ask: () => S3Credentials
  #credentials: S3Credentials
  #signer: RequestSigner
  /** What has signed each refused request. It is no member of the refusal, which is logged. */
  readonly #signedBy = new WeakMap<S3Refusal, RequestSigner>()

  /** @param credentials asked again after the store has refused those it gave */
  constructor(location: S3Location, credentials: () => S3Credentials) {
    this.#location = location
    this.#host = new URL(location.endpoint).host
    this.#ask = credentials
    this.#credentials = credentials()
    this.#signer = new RequestSigner(this.#credentials, location.region)
  }

  sign({ method, key, query = {}, body = [] }: ToSign): Signed {
    const digest = createHash('sha256')
    for (const part of body) digest.update(part)
    const path = `/${this.#location.bucket}/${uriEncode(key, true)}`.replace(/\/$/, '')
    const asked = Object.entries(query).map(([name, value]) => `${uriEncode(name)}=${uriEncode(value)}`)
    const inOrder = canonicalQuery(asked.join('&'))
    const request = { method, path, query: inOrder, host: this.#host, payloadHash: digest.digest('hex') }
    const signer = this.#signer
    return { path: inOrder === '' ? path : `${path}?${inOrder}`, headers: signer.sign(request), signer }
  }

  /** Keeps that a request signed so was refused. */
  refused(refusal: S3Refusal, { signer }: Pick<Signed, 'signer'>): void {
    this.#signedBy.set(refusal, signer)
  }

  /** True when there are other credentials than those by which the refused request was signed. */
  renewed(error: unknown): boolean {
    if (!(error instanceof S3Refusal) || (error.status !== 403 && error.status !== 400)) return false
    const signer = this.#signedBy.get(error)
    if (signer === undefined) return false
    // Many requests may be refused at once: the first one finds the new credentials.
    if (signer === this.#signer) this.#renew()
    return signer !== this.#signer
  }

  #renew(): void {
    let now: S3Credentials
    try {
      now = this.#ask()
    } catch {
      // A program that writes the file anew may have removed it for a moment.
      return
    }
    if (isSame(now, this.#credentials)) return
    this.#credentials = now
    this.#signer = new RequestSigner(now, this.#location.region)
  }
}

function isSame(one: S3Credentials, other: S3Credentials): boolean {
  return (
    one.accessKeyId === other.accessKeyId &&
    one.secretAccessKey === other.secretAccessKey &&
    one.sessionToken === other.sessionToken
  )
}
