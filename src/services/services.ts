import { join } from 'node:path'
import { lockFolder } from './folder-lock.js'
import { type GatewayOptions, type RunningGateway, startGateway } from './gateway/gateway.js'
import { type ServicesLog, silentLog } from './log.js'
import { makePrivateFolder } from './private-file.js'

export interface ServicesOptions {
  /** Folder everything is kept in; made when it is not there. */
  readonly data: string
  readonly gateway: GatewayOptions
  readonly log?: ServicesLog
}

export interface Services {
  readonly gateway: Omit<RunningGateway, 'stop'>
  /** Lets running requests finish, then closes everything. What was acknowledged is on the disk with or without it. */
  stop(): Promise<void>
}

/**
 * Starts the embedded services. Rejects with `code` 'DATA_IN_USE' when another instance uses the folder, 'EADDRINUSE' when the port is taken.
 */
export async function startServices(options: ServicesOptions): Promise<Services> {
  makePrivateFolder(options.data)
  const unlock = lockFolder(options.data)
  try {
    const gateway = await startGateway(join(options.data, 'gateway'), options.gateway, options.log ?? silentLog)
    return {
      gateway,
      async stop() {
        await gateway.stop()
        unlock()
      },
    }
  } catch (error) {
    unlock()
    throw error
  }
}
