import { S3Error } from '../../../common/errors/s3-error.js'
import type { Session } from '../../account/session.js'
import { encodePath } from '../../brand.js'
import { nonsense } from '../../errors.js'

export interface LinkRequest {
  readonly bucket: string
  readonly key: string
  /** 1 to 604,800. The gateway silently uses seven days for any other value. */
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
  // Gateways clean the path: they turn `a//b` into `a/b`, which is another object.
  const path = `${host}/${encodePath(bucket)}/${encodePath(key)}`
  if (sameText(url.slice(0, Math.max(url.indexOf('?'), 0)), path)) return url
  throw new S3Error('InvalidRequest', {
    message: "The object gateway's share links cannot name this key.",
    fields: { Key: key },
  })
}

/** Compares decoded texts, because encoders escape different characters. */
function sameText(given: string, wanted: string): boolean {
  try {
    return decodeURIComponent(given) === decodeURIComponent(wanted)
  } catch {
    return false
  }
}
