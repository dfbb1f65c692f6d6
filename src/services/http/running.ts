import type { Server } from 'node:http'
import { portOf, urlOf } from './listen.js'

/** A service that listens. */
export interface RunningServer {
  /** `http://host:port` */
  readonly url: string
  readonly port: number
  /** May be called again. */
  stop(): Promise<void>
}

/** @param stop closes the server and what it works with; called once */
export function runningServer(server: Server, host: string, stop: () => Promise<void>): RunningServer {
  const port = portOf(server)
  let stopped: Promise<void> | undefined
  return {
    url: urlOf(host, port),
    port,
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}
