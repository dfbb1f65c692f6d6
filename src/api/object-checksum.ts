import type { ChecksumAlgorithm } from '../../common/checksums/checksums.js'

export type ChecksumType = 'FULL_OBJECT' | 'COMPOSITE'

export interface ObjectChecksum {
  readonly algorithm: ChecksumAlgorithm
  /** Base64, with `-N` for a composite checksum. */
  readonly value: string
  readonly type: ChecksumType
}
