import type { CID } from 'multiformats/cid'
import { notRetrievable } from './file-node.js'
import { type NamedLink, SHARD_DIGITS } from './unixfs-node.js'

/** File systems have names of 255 bytes. Paths in a TAR are as long as all names above a file together. */
const LONGEST_NAME = 1024

/**
 * Checks the names in a block of a directory: one that leads out of the directory would do so where it is unpacked.
 * @throws NetworkError NotRetrievable
 */
export function requireNames(cid: CID, links: readonly NamedLink[], isShard: boolean): void {
  const names = new Set<string>()
  for (const { name } of links) {
    const own = isShard ? name.slice(SHARD_DIGITS) : name
    const leadsToShard = isShard && name.length === SHARD_DIGITS
    if (names.has(name) || (!leadsToShard && (/^(\.{0,2})$|[/\0]/.test(own) || !own.isWellFormed()))) {
      throw notRetrievable(`The directory ${cid} has the name ${JSON.stringify(name)} twice, or no entry can have it.`)
    }
    if (name.length > LONGEST_NAME)
      throw notRetrievable(`The directory ${cid} has a name of more than ${LONGEST_NAME} characters.`)
    names.add(name)
  }
}
