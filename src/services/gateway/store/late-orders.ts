import { LRUCache } from 'lru-cache'
import { GatewayError } from '../errors.js'
import type { WriteOrder } from './fences.js'

interface OrderedUpload {
  readonly bucket: number
  readonly key: Buffer
  order: WriteOrder | undefined
}

interface Lane {
  readonly uploads: Map<string, OrderedUpload>
  /**
   * Orders that arrived before the head of their upload, which comes on another connection. Made when the first does:
   * the cache takes 20 KB.
   */
  early?: LRUCache<string, OrderedUpload>
}

/** Most orders kept per caller for uploads whose head has not arrived yet. */
const MAX_EARLY = 1000

/** Running uploads that declare their order only before their last bytes, by caller and write id. */
export class LateOrders {
  readonly #lanes = new Map<number, Lane>()

  /**
   * Call `close` at the end of the upload.
   * @param caller id of the account; 0 for anonymous callers
   */
  open(caller: number, writeId: string, bucket: number, key: Buffer): LateOrder {
    const lane = this.#lane(caller)
    const { uploads } = lane
    const upload: OrderedUpload = { bucket, key, order: undefined }
    const reported = lane.early?.get(writeId)
    lane.early?.delete(writeId)
    if (reported !== undefined && isSame(reported, upload)) upload.order = reported.order
    uploads.set(writeId, upload)
    return {
      take() {
        if (upload.order === undefined) throw new GatewayError('FenceMissing')
        return upload.order
      },
      close: () => {
        if (uploads.get(writeId) === upload) uploads.delete(writeId)
        // A later upload may have opened another lane since.
        if (uploads.size + (lane.early?.size ?? 0) === 0 && this.#lanes.get(caller) === lane) this.#lanes.delete(caller)
      },
    }
  }

  /** Throws GatewayError WriteIdReused when the id belongs to an upload of another key. */
  give(caller: number, bucket: number, key: Buffer, order: WriteOrder): void {
    const lane = this.#lane(caller)
    const reported = { bucket, key, order }
    const upload = lane.uploads.get(order.writeId)
    if (upload !== undefined) {
      if (!isSame(upload, reported)) throw new GatewayError('WriteIdReused')
      upload.order = order
      return
    }
    lane.early ??= new LRUCache({ max: MAX_EARLY })
    lane.early.set(order.writeId, reported)
  }

  #lane(caller: number): Lane {
    const lane = this.#lanes.get(caller) ?? { uploads: new Map() }
    this.#lanes.set(caller, lane)
    return lane
  }
}

interface LateOrder {
  /** Throws GatewayError FenceMissing when the order has not been declared. */
  take(): WriteOrder
  close(): void
}

function isSame(one: OrderedUpload, other: OrderedUpload): boolean {
  return one.bucket === other.bucket && one.key.equals(other.key)
}
