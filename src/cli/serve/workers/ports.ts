import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { Config } from '../../config/config.js'

const ENDPOINT = ['port', 'host'] as const
const SERVICES = [
  ['gatewayPort', 'gatewayHost'],
  ['platformPort', 'platformHost'],
  ['paymentPort', 'paymentHost'],
] as const

type SharedPorts = { -readonly [Name in (typeof ENDPOINT | (typeof SERVICES)[number])[0]]?: number }

/**
 * Chooses free ports for all workers where the options say 0: each must stay the same when all workers die.
 * @param withServices true if the workers run the embedded services, too
 */
export async function choosePorts(config: Config, withServices: boolean): Promise<SharedPorts> {
  const chosen: SharedPorts = {}
  const wanted = [ENDPOINT, ...(withServices ? SERVICES : [])].filter(([name]) => config[name] === 0)
  // All at the same time, so that each gets another one.
  const servers = await Promise.all(
    wanted.map(async ([name, host]) => {
      const server = createServer()
      const listening = once(server, 'listening')
      server.listen(0, config[host])
      await listening
      chosen[name] = (server.address() as AddressInfo).port
      return server
    }),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return chosen
}
