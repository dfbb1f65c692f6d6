import { CID } from 'multiformats/cid'
import { NetworkError } from '../../network.js'

/** @throws NetworkError NotRetrievable */
export function parseCid(text: string): CID {
  try {
    return CID.parse(text)
  } catch (cause) {
    throw new NetworkError('NotRetrievable', `${JSON.stringify(text)} is no CID.`, { cause })
  }
}
