import { GatewayError } from '../../errors.js'
import { decode } from '../../http/target.js'
import { dealEndpoint } from './envelope.js'

/**
 * GET dealprogress/<token>: progress of the deal, or of the task with offline deals, that the account requested with
 * this client token.
 */
export const dealProgress = dealEndpoint({
  nothing: () => null,
  async run({ context, account }, rest) {
    const token = decode(rest).toString()
    const progress = context.desk.progress(account.id, token) ?? context.offlineDesk?.progress(account.id, token)
    if (progress === undefined) throw new GatewayError('UnknownToken')
    const { phase, bytesDone, bytesTotal, filesDone, filesTotal } = progress
    return { data: { phase, bytesDone, bytesTotal, filesDone, filesTotal }, message: '' }
  },
})
