const KiB = 1024
const MiB = 1024 * KiB
export const GiB = 1024 * MiB

/** Bounds of the gateway. */
export interface GatewayLimits {
  /** Bodies up to this size are stored in the index, where one fsync serves many of them. Bytes. */
  readonly inlineBytes: number
  /** Largest object, bytes: 5 TiB as on public gateways (MinIO cmd/utils.go). */
  readonly maxObjectBytes: number
  /** Largest CAR of an offline deal, bytes, except for a single larger object: 8 GiB, as public gateways slice. */
  readonly maxCarBytes: number
  /** Most bytes on the disk that the CARs of offline deals of one account take together. */
  readonly maxCarBytesOfAccount: number
  readonly maxKeyBytes: number
  /** Largest JSON-RPC body, bytes. */
  readonly maxRpcBytes: number
  /** Sum of the sizes of names and values of user metadata, bytes. */
  readonly maxMetadataBytes: number
  /** An upload that receives nothing for this long is aborted, ms. */
  readonly uploadIdleMs: number
  /** A download whose client reads nothing for this long is aborted, ms. */
  readonly downloadIdleMs: number
  /** Pause between attempts to find out the outcome of a deal, and to release the bodies it held, ms. */
  readonly reconcileMs: number
  /** Time that running requests get to finish when the gateway stops, ms. */
  readonly stopMs: number
  /** Most open connections; one address, other than those of this machine, gets three quarters. */
  readonly maxConnections: number
}

export const gatewayLimits: GatewayLimits = Object.freeze({
  inlineBytes: 32 * KiB,
  maxObjectBytes: 5 * 1024 * GiB,
  maxCarBytes: 8 * GiB,
  maxCarBytesOfAccount: 256 * GiB,
  maxKeyBytes: 1024,
  maxRpcBytes: MiB,
  maxMetadataBytes: 8 * KiB,
  uploadIdleMs: 60_000,
  downloadIdleMs: 600_000,
  reconcileMs: 30_000,
  stopMs: 10_000,
  maxConnections: 4096,
})
