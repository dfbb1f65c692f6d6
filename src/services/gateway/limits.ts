const KiB = 1024
const MiB = 1024 * KiB

/** Bounds of the gateway. */
export interface GatewayLimits {
  /** Bodies up to this size are kept in the index: one fsync serves many of them. Bytes. */
  readonly inlineBytes: number
  /** Largest object, bytes: 5 TiB as on public gateways (MinIO cmd/utils.go). */
  readonly maxObjectBytes: number
  readonly maxKeyBytes: number
  /** Largest JSON-RPC body, bytes. */
  readonly maxRpcBytes: number
  /** Names and values of user metadata together, bytes. */
  readonly maxMetadataBytes: number
  /** An upload on which nothing arrives for this long is given up, ms. */
  readonly uploadIdleMs: number
  /** A download of which nobody takes anything for this long is given up, ms. */
  readonly downloadIdleMs: number
  /** How long to wait between attempts to learn what became of a deal, and to remove what it was made of, ms. */
  readonly settleMs: number
  /** How long running requests may take to finish once the gateway is to stop, ms. */
  readonly stopMs: number
}

export const gatewayLimits: GatewayLimits = Object.freeze({
  inlineBytes: 32 * KiB,
  maxObjectBytes: 5 * 1024 * 1024 * MiB,
  maxKeyBytes: 1024,
  maxRpcBytes: MiB,
  maxMetadataBytes: 8 * KiB,
  uploadIdleMs: 60_000,
  downloadIdleMs: 600_000,
  settleMs: 30_000,
  stopMs: 10_000,
})
