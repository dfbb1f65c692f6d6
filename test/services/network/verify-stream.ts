import { NetworkError } from '../../../src/services/network/network.js'
import { type BlockSink, parseCid, putFile } from '../../../src/services/network/pack/dag/unixfs.js'
import { Feed } from './feed.js'

const nowhere: BlockSink = { put: (cid) => cid }

/**
 * Throws at the end of a stream whose bytes do not have this root; passes the bytes on. Holds up to ten chunks of 1
 * MiB. No reader may write into the bytes that pass: up to 1 MiB of them are hashed later.
 */
export async function* verifyStream(bytes: AsyncIterable<Uint8Array>, cid: string): AsyncGenerator<Uint8Array> {
  const expected = parseCid(cid)
  const feed = new Feed()
  const computing = putFile(feed.content(), nowhere)
  computing.catch((error) => feed.fail(error))
  try {
    for await (const chunk of bytes) {
      if (chunk.length === 0) continue
      await feed.give(chunk)
      yield chunk
    }
    feed.end()
    const found = (await computing).cid
    if (!found.equals(expected)) {
      throw new NetworkError('NotRetrievable', `The bytes that came have the root ${found}, not ${cid}.`)
    }
  } finally {
    feed.fail(new Error('The stream that was to be verified has ended early.'))
  }
}
