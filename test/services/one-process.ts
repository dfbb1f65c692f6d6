import { join } from 'node:path'
import { silentLog } from '../../services/log.js'
import { catalogue } from '../../services/network/embedded/catalogue.js'
import { startPayment } from '../../services/payment/payment.js'
import { startPlatform } from '../../services/platform/platform.js'
import { open } from './network/embedded-network.js'

/**
 * Runs one service over the folder given, and prints where, and the first user if it made it. Its network is its own,
 * and the clock of that stands still; with `deals` the payment service shares one, with short epochs, and has a task
 * platform.
 */
const [service = '', folder = '', more = '{}'] = process.argv.slice(2)
const { contents = join(folder, 'payment'), deals = false, ...given } = JSON.parse(more)
const options = { host: '127.0.0.1', port: 0, ...given }
const { database } = options
const ends = { teardown: () => {} }
const network = deals
  ? await open(ends, `${contents}-network`, {
      ...{ database, shared: true, virtual: false, epochSeconds: 0.001 },
      providers: catalogue,
    })
  : await open(ends, join(folder, 'network'), { providers: catalogue })

if (service === 'platform') {
  const platform = await startPlatform(join(folder, 'platform'), options, { network }, silentLog)
  const made = await platform.makeFirstUser()
  process.stdout.write(`${JSON.stringify({ url: platform.url, made })}\n`)
} else {
  const beside = { host: '127.0.0.1', port: 0, database, cars: { networks: ['127.0.0.1'] } }
  const platform = deals ? await startPlatform(join(folder, 'platform'), beside, { network }, silentLog) : undefined
  await platform?.makeFirstUser()
  const { url } = await startPayment(contents, options, { network, platform: platform?.login }, silentLog)
  process.stdout.write(`${JSON.stringify({ url })}\n`)
}
