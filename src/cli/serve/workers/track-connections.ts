import type { Worker } from 'node:cluster'

/** A connection that this process has accepted and sends to a worker. */
interface Handle {
  /** -1 once it is closed here, because the worker has it. */
  readonly fd: number
  close(): void
}

/** Connections beyond which those are forgotten that workers have taken. */
const MANY = 64

/**
 * Remembers the connections that are on the way to a worker. Node (lib/internal/cluster/round_robin_handle.js) keeps
 * each open until the worker confirms that it has it: if the worker dies before that, the client waits in vain.
 * @returns closes those of a worker that has died, so that their clients try again
 */
export function trackConnections({ process: child }: Pick<Worker, 'process'>): () => void {
  const under = new Set<Handle>()
  const { send } = child
  let dead = false
  child.send = (...args: unknown[]) => {
    const [, handle] = args
    if (isConnection(handle)) {
      if (dead) setImmediate(() => handle.close())
      if (under.size >= MANY) for (const old of under) if (old.fd === -1) under.delete(old)
      under.add(handle)
    }
    return Reflect.apply(send, child, args)
  }
  return () => {
    dead = true
    for (const handle of under) if (handle.fd !== -1) handle.close()
    under.clear()
  }
}

function isConnection(value: unknown): value is Handle {
  return typeof value === 'object' && value !== null && 'fd' in value && 'close' in value
}
