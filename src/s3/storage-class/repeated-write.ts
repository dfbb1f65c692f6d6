import { S3Error } from '../../common/errors/s3-error.js'
import type { StoredObject } from '../../objects/store.js'
import type { RequestBody } from '../../request/body/body.js'

/**
 * For a PUT that an SDK repeats unchanged because the answer to the first one was lost: reads and verifies the body,
 * and stores nothing. Throws DuplicateRequest when the body differs from the stored one, which a signature over
 * UNSIGNED-PAYLOAD allows.
 */
export async function requireSameBody(body: RequestBody, stored: StoredObject): Promise<void> {
  if ((body.length ?? stored.size) !== stored.size) throw otherBody()
  let received = 0
  const { md5 } = await body.stream(
    (chunk) => {
      received += chunk.length
      if (received > stored.size) throw otherBody()
    },
    { md5: true },
  )
  if (received !== stored.size || md5?.toString('hex') !== stored.etag) throw otherBody()
}

function otherBody(): S3Error {
  return new S3Error('DuplicateRequest', {
    message:
      'This very request has been carried out already, with another body. To store this one, sign the request anew.',
  })
}
