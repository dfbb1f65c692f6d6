import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type ServicesLog, startServices } from '../../../services/index.js'

const ignored = () => {}
const log: ServicesLog = {
  info: ignored,
  warn: ignored,
  // An unexpected error: the answer says only that it happened.
  error: (fields, message) => console.error(message, fields),
}

/**
 * Runs the services over the folder given, with more options of the gateway, and prints where and with which keys. Over
 * a database, all services are there, with epochs that do not end by themselves.
 */
const [data = '', more = '{}'] = process.argv.slice(2)
const local = { host: '127.0.0.1', port: 0 }
const options = { ...local, ...JSON.parse(more) }
const { database } = options
const shared = database === undefined ? {} : { database, epochSeconds: 86_400 }
const { gateway, platform } = await startServices({
  data,
  gateway: options,
  ...(database !== undefined && { platform: { ...local, database, daemon: 'external' } }),
  network: { control: true, ...shared },
  log,
})
await platform?.makeFirstUser()
const credentials = await gateway.credentials()
// What nothing refers to is gone by now; the lock of the folder must not be among it.
setFlagsFromString('--expose-gc')
for (let round = 0; round < 3; round++) {
  await delay(1)
  runInNewContext('gc')()
}
await delay(1)
process.stdout.write(`${JSON.stringify({ url: gateway.url, credentials })}\n`)
