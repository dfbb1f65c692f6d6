import { ALGORITHM } from '../common/sigv4.js'
import { S3Error } from '../errors/s3-error.js'

/** Signature version 2 and everything else that is not SigV4 with HMAC, refused by name. */
export function unsupportedAlgorithm(algorithm: string): S3Error {
  if (algorithm === 'AWS') {
    return new S3Error('InvalidRequest', {
      message: `Signature version 2 is not supported. Sign with ${ALGORITHM} (signature version 4); aws-cli 1 presigns with it after: aws configure set default.s3.signature_version s3v4`,
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
