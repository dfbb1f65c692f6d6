import { GatewayError } from '../../errors.js'
import { decode } from '../../http/target.js'
import { dealEndpoint } from './envelope.js'
import { asking } from './network-failure.js'

/** GET dealstatus/<dealCid>: the status of a deal of the account in the network. */
export const dealStatus = dealEndpoint({
  nothing: () => null,
  async run({ context: { network, deals }, account }, rest) {
    const cid = decode(rest).toString()
    if (!deals.isOf(account.id, cid)) {
      // A crash may have interrupted the making of this deal: while the network cannot say so, nothing is known.
      if (deals.pending().some((deal) => deal.account === account.id)) await asking(() => network.status(cid))
      throw new GatewayError('NoSuchDeal')
    }
    const status = await asking(() => network.status(cid))
    const { dealCid, dataCid, pieceCid, pieceSize, terms, state, message, startEpoch, endEpoch, epoch } = status
    const { epochSeconds } = network
    const deal = { dealCid, dataCid, pieceCid, pieceSize, minerId: terms.minerId, state, message, startEpoch, endEpoch }
    return { data: { ...deal, epoch, epochSeconds }, message: '' }
  },
})
