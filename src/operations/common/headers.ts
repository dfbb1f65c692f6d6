import type { IncomingHttpHeaders } from 'node:http'
import { type ChecksumAlgorithm, checksumAlgorithms, parseChecksumAlgorithm } from '../../common/checksums.js'
import { S3Error } from '../../errors/s3-error.js'

export function headerText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(',') : value
}

/** The checksum algorithm that a header names, if it is there. Throws InvalidRequest for an unknown one. */
export function checksumAlgorithmHeader(headers: IncomingHttpHeaders, name: string): ChecksumAlgorithm | undefined {
  const value = headerText(headers, name)
  if (value === undefined || value === '') return undefined
  const algorithm = parseChecksumAlgorithm(value)
  if (algorithm) return algorithm
  throw new S3Error('InvalidRequest', {
    message: `${name} is ${value}: it must be one of ${checksumAlgorithms.join(', ')}.`,
  })
}
