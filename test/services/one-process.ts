import { join } from 'node:path'
import { silentLog } from '../../src/services/log.js'
import { catalogue } from '../../src/services/network/embedded/catalogue.js'
import { startPayment } from '../../src/services/payment/payment.js'
import { startPlatform } from '../../src/services/platform/platform.js'
import { open } from './network/embedded-network.js'

/**
 * Runs one service over the folder given, with a network of its own whose clock stands still, and prints where, and the
 * first user if it made it.
 */
const [service = '', folder = '', more = '{}'] = process.argv.slice(2)
const network = await open({ teardown: () => {} }, join(folder, 'network'), { providers: catalogue })
const options = { host: '127.0.0.1', port: 0, ...JSON.parse(more) }
if (service === 'platform') {
  const platform = await startPlatform(join(folder, 'platform'), options, { network }, silentLog)
  const made = await platform.makeFirstUser()
  process.stdout.write(`${JSON.stringify({ url: platform.url, made })}\n`)
} else {
  const { contents = join(folder, 'payment'), ...rest } = options
  const { url } = await startPayment(contents, rest, { network }, silentLog)
  process.stdout.write(`${JSON.stringify({ url })}\n`)
}
