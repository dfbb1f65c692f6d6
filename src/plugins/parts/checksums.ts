import {
  type Checksum,
  type ChecksumAlgorithm,
  createChecksum,
  prepareChecksum,
} from '../../../common/checksums/checksums.js'

export {
  type Checksum,
  type ChecksumAlgorithm as Algorithm,
  checksumAlgorithms as algorithms,
  checksumHeader as headerOf,
} from '../../../common/checksums/checksums.js'

/** Begins a checksum. Its code is loaded at the first use of the algorithm. */
export async function open(algorithm: ChecksumAlgorithm): Promise<Checksum> {
  await prepareChecksum(algorithm)
  return createChecksum(algorithm)
}
