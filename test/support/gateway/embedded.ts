import { join } from 'node:path'
import type { Test } from 'tap'
import { temporaryFolder } from '../content/folders.js'
import { rowsOf } from '../content/rows.js'
import { Command, stopAtEnd } from '../server/cli.js'
import { type Mode, quirksOption } from '../server/modes.js'
import type { GatewayAddress } from './gateway-address.js'

/** Starts the embedded gateway alone, as the process `dealgate services`, until the test ends. */
export async function startGateway(t: Test, mode: Mode): Promise<GatewayAddress & { readonly pid: number }> {
  const data = temporaryFolder(t)
  const command = new Command<{ gateway: string; accessKey: string; secretKey: string }>([
    'services',
    '--gateway-port',
    '0',
    '--data',
    data,
    '--gateway-quirks',
    quirksOption(mode),
  ])
  stopAtEnd(t, 'gateway', command)
  await command.start()
  const { gateway, accessKey, secretKey } = command.line
  return {
    url: gateway,
    accessKey,
    secretKey,
    get pid() {
      return command.pid
    },
  }
}

/** The keys of the first account of the embedded gateway below a data folder. */
export function firstAccount(data: string): { accessKey: string; secretKey: string } {
  const query = 'SELECT access_key AS accessKey, secret_key AS secretKey FROM accounts WHERE id = 1'
  return rowsOf(join(data, 'services', 'gateway', 'index.db'), query)[0]
}
