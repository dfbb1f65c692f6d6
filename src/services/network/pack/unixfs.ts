import { importFile, type WritableStorage } from 'ipfs-unixfs-importer'
import type { CID } from 'multiformats/cid'

/** Where blocks go: `put` is awaited, so it may hold back. */
export type BlockSink = WritableStorage

/** A node of the DAG as its parent links to it. */
export interface DagNode {
  readonly cid: CID
  /** Bytes of all blocks beneath it and its own: what a link calls Tsize. */
  readonly size: number
}

/**
 * In the profile of IPIP-499: CIDv1 with SHA-256, raw leaves of 1 MiB, balanced with 1024 links to a node. Holds up to ten chunks of 1 MiB, and for each 1024 MiB
 * of the file what a link needs.
 */
export async function putFile(content: AsyncIterable<Uint8Array>, blocks: BlockSink): Promise<DagNode> {
  const { cid, size } = await importFile({ content }, blocks, { profile: 'unixfs-v1-2025' })
  return { cid, size: Number(size) }
}
