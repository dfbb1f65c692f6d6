import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { explained } from './data-folder-error.js'
import { lockFolder } from './folder-lock.js'
import { type GatewayOptions, type RunningGateway, startGateway } from './gateway/gateway.js'
import { type ServicesLog, silentLog } from './log.js'
import { type NetworkOptions, openNetwork } from './network/open.js'

export interface ServicesOptions {
  /** Folder for all data; created when it is missing. */
  readonly data: string
  readonly gateway: GatewayOptions
  /** Options of the storage network that deals are made in. */
  readonly network?: NetworkOptions
  readonly log?: ServicesLog
}

export interface Services {
  readonly gateway: Omit<RunningGateway, 'stop'>
  /**
   * Lets running requests finish for up to 10 s, then closes everything. Acknowledged writes are durable in any case.
   * May be called again.
   */
  stop(): Promise<void>
}

/**
 * Starts the embedded services. Rejects with `code` 'DATA_IN_USE' when another instance uses the folder, 'EADDRINUSE'
 * when the port is taken, and 'DATA_FOLDER' when the disk is full or the folder cannot be used; the message says what
 * to do.
 */
export async function startServices(options: ServicesOptions): Promise<Services> {
  try {
    return await start(options)
  } catch (error) {
    throw explained(options.data, error)
  }
}

async function start(options: ServicesOptions): Promise<Services> {
  // An existing folder keeps its permissions; the folders inside are private.
  mkdirSync(options.data, { recursive: true, mode: 0o700 })
  const unlock = lockFolder(options.data)
  const { data, log = silentLog } = options
  try {
    const opened = await openNetwork(data, options.network ?? {}, log)
    const { network } = opened
    try {
      const gateway = await startGateway(join(data, 'gateway'), options.gateway, opened, log)
      let stopped: Promise<void> | undefined
      const stop = (): Promise<void> => {
        stopped ??= gateway
          .stop()
          .finally(() => network.stop())
          .finally(unlock)
        return stopped
      }
      return { gateway, stop }
    } catch (error) {
      await network.stop()
      throw error
    }
  } catch (error) {
    unlock()
    throw error
  }
}
