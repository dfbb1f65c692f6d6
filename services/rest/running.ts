import type { Listening } from '../http/server.js'

/** A service that listens. */
export interface RunningServer extends Omit<Listening, 'close'> {
  /** May be called again. */
  stop(): Promise<void>
}

/** @param stop closes the server and what it works with; called once */
export function runningServer({ url, port, ownUrl }: Listening, stop: () => Promise<void>): RunningServer {
  let stopped: Promise<void> | undefined
  return {
    url,
    port,
    ownUrl,
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}
