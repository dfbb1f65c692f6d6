import type { CID } from 'multiformats/cid'
import type { OpenCar } from '../../network/pack/index.js'

/** The multihash of a CID that contains its block, and the codec of raw bytes. */
const IDENTITY = 0x00
const RAW = 0x55

/** A content that can be read. */
export type Readable = Pick<OpenCar, 'block' | 'fileSize' | 'range' | 'close'>

/** The content that a CID contains itself: a client may ask any gateway for it. Undefined for other CIDs. */
export function contained(cid: CID): Readable | undefined {
  if (cid.multihash.code !== IDENTITY || cid.code !== RAW) return undefined
  const bytes = cid.multihash.digest
  return {
    block: async () => bytes,
    fileSize: async () => bytes.length,
    async *range(_, first, last) {
      if (last >= first) yield bytes.subarray(first, last + 1)
    },
    close: async () => {},
  }
}
