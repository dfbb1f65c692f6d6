import { startServices } from '../../src/services/index.js'

/** Runs the services over the folder given, and prints where and with which keys. */
const [data = ''] = process.argv.slice(2)
const { gateway } = await startServices({ data, gateway: { host: '127.0.0.1', port: 0 } })
process.stdout.write(`${JSON.stringify({ url: gateway.url, credentials: await gateway.credentials() })}\n`)
