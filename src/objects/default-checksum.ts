import type { Encrypted } from '../api/encryption.js'

/**
 * The checksum that S3 computes for an object that comes without one, or without one of all its bytes:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html. None for an object with a key of
 * its own, of which it would tell whether the content is that of a known file, as an MD5 would.
 * @param encrypted how the object will be encrypted, if at all
 */
export function defaultChecksum(encrypted: Pick<Encrypted, 'algorithm'> | undefined): 'CRC64NVME' | undefined {
  return encrypted === undefined || encrypted.algorithm === 'AES256' ? 'CRC64NVME' : undefined
}
