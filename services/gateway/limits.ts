const KiB = 1024
const MiB = 1024 * KiB
export const GiB = 1024 * MiB

export const gatewayLimits = {
  /** Bodies up to this size are stored in the index, where one fsync serves many of them. Bytes. */
  inlineBytes: 32 * KiB,
  /** Largest object, bytes: 5 TiB as on public gateways (MinIO cmd/utils.go). */
  maxObjectBytes: 5 * 1024 * GiB,
  /** Largest CAR of an offline deal, bytes, except for a single larger object: 8 GiB, as public gateways slice. */
  maxCarBytes: 8 * GiB,
  /** Most bytes on the disk that the CARs of offline deals of one account take together. */
  maxCarBytesOfAccount: 256 * GiB,
  maxKeyBytes: 1024,
  /** Largest JSON-RPC body, bytes. */
  maxRpcBytes: MiB,
  /** Sum of the sizes of names and values of user metadata, bytes. */
  maxMetadataBytes: 8 * KiB,
  /** An upload that receives nothing for this long is aborted, ms. */
  uploadIdleMs: 60_000,
  /** A download whose client reads nothing for this long is aborted, ms. */
  downloadIdleMs: 600_000,
  /**
   * Pause between attempts to find out the outcome of a deal, and to release the bodies it held, and between looks for
   * what other processes have left, ms.
   */
  reconcileMs: 30_000,
  /** Time that running requests get to finish when the gateway stops, ms. */
  stopMs: 10_000,
  /** Time in which attempts of one operation of an S3 store that has the bodies may begin, ms. */
  storeMs: 12_000,
  /** Time in which nothing moves until an attempt at that store is given up, ms. */
  storeIdleMs: 6_000,
  /** Time for which one look counts whether that store is still ours, ms. */
  storeCheckMs: 60_000,
  /** Most memory for bodies on their way to that store, bytes: half of it for those that take several requests. */
  storeRoomBytes: 256 * MiB,
  /** Age at which a body without an object is removed from that store, or from a folder of several processes, ms. */
  orphanMs: 24 * 3_600_000,
  /** Pause between two looks for such bodies, ms. */
  orphanPauseMs: 24 * 3_600_000,
  /** Time for which a body stays that has lost its object while other processes may read it, ms. */
  readersMs: 3_600_000,
  /** Most open connections; one address, other than those of this machine, gets three quarters. */
  maxConnections: 4096,
}

export type GatewayLimits = Readonly<typeof gatewayLimits>
