import { decode } from '../../http/target.js'
import { dealEndpoint } from './envelope.js'
import { asking } from './network-failure.js'

/** GET dealstatus/<dealCid>: where a deal stands in the network. */
export const dealStatus = dealEndpoint({
  nothing: () => null,
  async run({ context: { network } }, rest) {
    const status = await asking(() => network.status(decode(rest).toString()))
    const { dealCid, dataCid, pieceCid, pieceSize, terms, state, message, startEpoch, endEpoch, epoch } = status
    const { epochSeconds } = network
    const deal = { dealCid, dataCid, pieceCid, pieceSize, minerId: terms.minerId, state, message, startEpoch, endEpoch }
    return { data: { ...deal, epoch, epochSeconds }, message: '' }
  },
})
