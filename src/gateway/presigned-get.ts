import { S3Error } from '../errors/s3-error.js'
import { encodePath } from './brand.js'
import { nonsense } from './errors.js'
import type { Session } from './session.js'

export interface LinkRequest {
  readonly bucket: string
  readonly key: string
  /** 1 to 604,800: the gateway makes seven days of anything else without a word. */
  readonly expirySeconds: number
  readonly host: string
}

/** See Gateway.presignedGet. */
export async function presignedGet(session: Session, request: LinkRequest): Promise<string> {
  const { bucket, key, expirySeconds, host } = request
  const { url } = await session.call({
    method: 'web.PresignedGet',
    params: { bucket, object: key, expiry: expirySeconds, host },
    subject: { bucket, key },
    repeatable: true,
  })
  if (typeof url !== 'string') throw nonsense('answered web.PresignedGet without a link')
  // Gateways clean the path: `a//b` becomes `a/b`, another object.
  const path = `${host}/${encodePath(bucket)}/${encodePath(key)}`
  if (sameText(url.slice(0, Math.max(url.indexOf('?'), 0)), path)) return url
  throw new S3Error('InvalidRequest', {
    message: "The object gateway's share links cannot name this key.",
    fields: { Key: key },
  })
}

/** Encoders differ in which characters they escape. */
function sameText(given: string, wanted: string): boolean {
  try {
    return decodeURIComponent(given) === decodeURIComponent(wanted)
  } catch {
    return false
  }
}
