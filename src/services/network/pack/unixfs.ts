import { type ImporterOptions, importer, type WritableStorage } from 'ipfs-unixfs-importer'
import type { CID } from 'multiformats/cid'

/** Where blocks go: `put` is awaited, so it may hold back. */
export type BlockSink = WritableStorage

/** A node of the DAG as its parent links to it. */
export interface DagNode {
  readonly cid: CID
  /** Bytes of all blocks beneath it and its own: what a link calls Tsize. */
  readonly size: bigint
}

export interface DirectoryEntry extends DagNode {
  /** Not empty, no `/`. */
  readonly name: string
}

/**
 * IPIP-499: CIDv1 with SHA-256, raw leaves of 1 MiB, balanced with 1024 links to a node, directories sharded above 256 KiB. The importer fills in what it is
 * given, so each call gets options of its own.
 */
const profile = (): ImporterOptions => ({ profile: 'unixfs-v1-2025' })

/** Holds up to ten chunks of 1 MiB, and for each 1024 MiB of the file what a link needs. */
export async function putFile(content: AsyncIterable<Uint8Array>, blocks: BlockSink): Promise<DagNode> {
  return last(importer([{ content }], blocks, { ...profile(), treeBuilder: asTheyCome }))
}

/**
 * A directory of nodes that are in the sink already. It is handed over one directory at a time: given whole paths, the importer would split names at
 * their backslashes and leave sub-directories out when it decides whether to shard.
 */
export function putDirectory(entries: Iterable<DirectoryEntry>, blocks: BlockSink): Promise<DagNode> {
  return last(
    importer([], blocks, {
      ...profile(),
      wrapWithDirectory: true,
      dagBuilder: async function* () {
        for (const { name, cid, size } of entries) yield async () => ({ path: name, cid, size })
      },
    }),
  )
}

const asTheyCome: NonNullable<ImporterOptions['treeBuilder']> = (nodes) => nodes

async function last(results: AsyncIterable<DagNode>): Promise<DagNode> {
  let node: DagNode | undefined
  for await (const result of results) node = result
  if (node === undefined) throw new Error('The importer made no node.')
  return { cid: node.cid, size: node.size }
}
