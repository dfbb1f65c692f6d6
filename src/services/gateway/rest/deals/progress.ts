import { GatewayError } from '../../errors.js'
import { decode } from '../../http/target.js'
import { dealEndpoint } from './envelope.js'

/** GET dealprogress/<token>: how far the deal asked for with this client token has come. */
export const dealProgress = dealEndpoint({
  nothing: () => null,
  async run({ context }, rest) {
    const progress = context.desk.progress(decode(rest).toString())
    if (progress === undefined) throw new GatewayError('UnknownToken')
    const { phase, bytesDone, bytesTotal, filesDone, filesTotal } = progress
    return { data: { phase, bytesDone, bytesTotal, filesDone, filesTotal }, message: '' }
  },
})
