import { importFile, type WritableStorage } from 'ipfs-unixfs-importer'
import type { CID } from 'multiformats/cid'

/** Destination of blocks: `put` is awaited, so it can apply backpressure. */
export type BlockSink = WritableStorage

/** A node of the DAG as its parent links to it. */
export interface DagNode {
  readonly cid: CID
  /** Bytes of the block and all blocks beneath it: the Tsize of a link. */
  readonly size: number
}

/**
 * Profiles of IPIP-499. `unixfs-v1-2025`: CIDv1 with SHA-256, raw leaves of 1 MiB, balanced with 1024 links per node.
 * `unixfs-v0-2015`, what `ipfs add` does by default: CIDv0, leaves of 256 KiB as nodes, 174 links per node.
 */
export type FileProfile = 'unixfs-v1-2025' | 'unixfs-v0-2015'

/** Writes a file. Holds up to ten of its chunks, and one link per full node of leaves. */
export async function putFile(
  content: AsyncIterable<Uint8Array>,
  blocks: BlockSink,
  profile: FileProfile = 'unixfs-v1-2025',
): Promise<DagNode> {
  const { cid, size } = await importFile({ content }, blocks, { profile })
  return { cid, size: Number(size) }
}
