import { S3Error } from '../../common/errors/s3-error.js'
import { ALGORITHM } from '../../common/sigv4.js'

/** The error for an algorithm other than SigV4 with HMAC; `AWS` is signature version 2 where it is not accepted. */
export function unsupportedAlgorithm(algorithm: string): S3Error {
  if (algorithm === 'AWS') {
    // AWS's exact message: after other errors s3cmd tries version 2, and this text makes it return to version 4.
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
    message: `Authorization must start with ${ALGORITHM}, the only supported scheme.`,
    fields: { ArgumentName: 'Authorization' },
  })
}

export function unsupportedToken(name: string): S3Error {
  return new S3Error('InvalidToken', {
    message: `${name} belongs to temporary credentials, and this access key id is none that this service has issued for a session.`,
  })
}
