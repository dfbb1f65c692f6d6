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
 * Writes a file in the profile of IPIP-499: CIDv1 with SHA-256, raw leaves of 1 MiB, balanced with 1024 links per node.
 * Holds up to ten chunks of 1 MiB, and one link per 1024 MiB of the file.
 */
export async function putFile(content: AsyncIterable<Uint8Array>, blocks: BlockSink): Promise<DagNode> {
  const { cid, size } = await importFile({ content }, blocks, { profile: 'unixfs-v1-2025' })
  return { cid, size: Number(size) }
}
