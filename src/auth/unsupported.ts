import { ALGORITHM } from '../common/sigv4.js'
import { S3Error } from '../errors/s3-error.js'

/** Signature version 2 in a header and everything else that is not SigV4 with HMAC, refused by name. */
export function unsupportedAlgorithm(algorithm: string): S3Error {
  if (algorithm === 'AWS') {
    // AWS's own words: s3cmd tries version 2 after an error of another kind, and goes back to version 4 when it reads exactly these.
    return new S3Error('InvalidRequest', {
      message: `The authorization mechanism you have provided is not supported. Please use ${ALGORITHM}.`,
    })
  }
  if (algorithm.startsWith('AWS4-')) {
    return new S3Error('UnsupportedSignature', {
      message: `The algorithm ${algorithm.slice(0, 64)} is not supported. Sign with ${ALGORITHM}.`,
    })
  }
  return new S3Error('InvalidArgument', {
    message: `Authorization must start with ${ALGORITHM}: no other scheme is supported.`,
    fields: { ArgumentName: 'Authorization' },
  })
}

export function unsupportedToken(name: string): S3Error {
  return new S3Error('InvalidToken', {
    message: `${name} belongs to temporary credentials, which this service does not have. Sign with a plain key pair.`,
  })
}
