import type { Test } from 'tap'
import { openAccountRegistry } from '../../../src/services/gateway/accounts/account-registry.js'
import type { GatewayOptions, NetworkOptions } from '../../../src/services/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { databaseOf } from '../engine.js'
import { Client, connectTo, start } from './client.js'

/** A gateway with its first account and a second one, each logged in, and a client without a log-in. */
export async function twoAccounts(t: Test, options: Partial<GatewayOptions> = {}, network: NetworkOptions = {}) {
  const data = temporaryFolder(t)
  const services = await start(data, options, network)
  t.teardown(() => services.stop())
  const owner = await connectTo(services)
  const registry = await openAccountRegistry(data, await databaseOf(data))
  t.teardown(() => registry.close())
  const { accessKey, secretKey } = await registry.add('second')
  const other = await logIn(owner.url, { accessKey, secretKey })
  return {
    data,
    services,
    registry,
    owner,
    other,
    keys: { accessKey, secretKey },
    anyone: new Client(owner.url, 'gateway'),
  }
}

export async function logIn(
  url: string,
  { accessKey, secretKey }: { accessKey: string; secretKey: string },
): Promise<Client> {
  const client = new Client(url, 'gateway')
  const { token } = await client.call('Login', { username: accessKey, password: secretKey })
  client.token = token
  return client
}
